package doctor

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// open opens a client of an ensemble in memory.
func open(t *testing.T, e *memdriver.Ensemble, params ...string) *zklock.Client {
	t.Helper()
	cfg, err := zklock.ParseURL("mem://?" + strings.Join(params, "&"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Connector = e.Connector()
	c, err := zklock.OpenConfig(cfg, zklock.WithIdentity(zklock.Identity{Host: "h", PID: 1}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func acquire(t *testing.T, c *zklock.Client, name string) {
	t.Helper()
	if _, err := c.Mutex(name).Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// findings returns the findings about the queues, and fails the test if one has advice although
// it is OK, or the other way round.
func findings(t *testing.T, c *zklock.Client) map[string]Finding {
	t.Helper()
	var r Report
	r.queues(t.Context(), c, 1<<20-1)
	all := make(map[string]Finding)
	for _, f := range r.Findings {
		all[f.What] = f
		if (f.Level == OK || f.Level == Unknown) != (f.Advice == "") || f.Text == "" {
			t.Errorf("%+v", f)
		}
	}
	return all
}

// TestQueuesOfAHealthyEnsemble: every finding is OK.
func TestQueuesOfAHealthyEnsemble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		c := open(t, e)
		acquire(t, c, "a")
		acquire(t, c, "b/c")
		all := findings(t, c)
		for what, f := range all {
			if f.Level != OK {
				t.Errorf("%s: %+v", what, f)
			}
		}
		if len(all) != 7 || !strings.Contains(all["queues"].Text, "2 names in use, with 2 contenders") {
			t.Errorf("%+v", all)
		}
	})
}

// TestQueuesWithTrouble: a contender without a session, one of another library, a sequence that is
// almost used up, and a clock that is ahead. A list of many has a few examples.
func TestQueuesWithTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		c := open(t, e)
		for i := range 10 {
			acquire(t, c, fmt.Sprintf("many/%d", i))
		}
		raw, err := e.Connector().Connect(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close(t.Context())
		all := driver.OpenACL(driver.PermAll)
		if _, err := raw.Create(t.Context(), "/zklock/many%2F1/_c_00000000-0000-0000-0000-000000000001-lock-", nil, driver.EphemeralSequential, all); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if _, err := raw.Create(t.Context(), fmt.Sprintf("/zklock/many%%2F%d/_c_00000000-0000-0000-0000-00000000000a-__WRIT__0000000007", i), []byte("x"), driver.Persistent, all); err != nil {
				t.Fatal(err)
			}
		}
		if err := memcontrol.Of(e).SetSequence("/zklock/many%2F2", 2_100_000_000); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = open(t, e).Mutex("many/2").Acquire(t.Context()) }()
		synctest.Wait()
		got := findings(t, c)
		for what, want := range map[string]struct {
			level Level
			text  string
		}{
			"orphans":  {ToDo, "10 contenders belong to no session"},
			"foreign":  {Warning, "11 contenders"},
			"sequence": {ToDo, `"many/2" is at 2100000000`},
			"clock":    {OK, ""},
		} {
			f := got[what]
			if f.Level != want.level || !strings.Contains(f.Text, want.text) {
				t.Errorf("%s: %+v, want %+v", what, f, want)
			}
			if len(f.Text) > 600 {
				t.Errorf("%s: %d bytes", what, len(f.Text))
			}
		}
		if text := got["orphans"].Text; !strings.Contains(text, "and 7 more") || !strings.Contains(text, "0000000007@0x") {
			t.Errorf("%s", text)
		}
	})
}

// TestQueuesOfAClockThatIsAhead: the contender was queued by a client whose clock is ahead.
func TestQueuesOfAClockThatIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		c := open(t, e)
		time.Sleep(time.Hour)
		acquire(t, c, "x")
		var r Report
		r.queuesAt(t.Context(), c, 1<<20-1, time.Now().Add(-time.Minute))
		for _, f := range r.Findings {
			if f.What == "clock" && (f.Level != Warning || !strings.Contains(f.Text, "h/1 by 1m0s")) {
				t.Errorf("%+v", f)
			}
		}
	})
}

func TestQueuesSequence(t *testing.T) {
	for name, want := range map[string]int64{
		"_c_x-__WRIT__0000000042": 42, "lock-2147483647": 2147483647, "short": 0, "": 0, "no-number-at-the-end": 0,
	} {
		if got := sequence(name); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
}

// TestQueuesWithALateContender: a server carries a create out long after its caller has given up.
func TestQueuesWithALateContender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		defer e.Close()
		const late = 12 * time.Second
		faults := faultdriver.NewToggle(faultdriver.Once(faultdriver.On(faultdriver.Multi, faultdriver.LateAfter(late))))
		cfg := zklock.Config{Connector: faultdriver.Wrap(e.Connector(), faults), PoolMaxSessions: 1, SessionTimeout: 10 * time.Second}
		gaveUp, err := zklock.OpenConfig(cfg, zklock.WithIdentity(zklock.Identity{Host: "h", PID: 2}))
		if err != nil {
			t.Fatal(err)
		}
		defer gaveUp.Close()
		c := open(t, e)
		acquire(t, gaveUp, "a")
		faults.On()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := gaveUp.Mutex("b").Acquire(ctx); err == nil {
			t.Fatal("acquired")
		}
		time.Sleep(late + time.Second)
		f := findings(t, c)["late"]
		t.Logf("%v", f)
		if f.Level != Warning || !strings.HasPrefix(f.Text, "1 contender was created long after it was sent: ") || !strings.Contains(f.Text, "h/2 by 12s") {
			t.Errorf("%+v", f)
		}
		time.Sleep(10 * time.Second) // a session timeout: the client has listed the name again
		if f := findings(t, c)["late"]; f.Level != OK {
			t.Errorf("%+v", f)
		}
	})
}

// What cannot be read is not known to be well.
func TestQueuesThatCannotBeReadAreUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		acquire(t, open(t, e), "a")
		acquire(t, open(t, e), "b")
		for path, levels := range map[string]map[string]Level{
			"/zklock":   {"queues": Unknown},
			"/zklock/a": {"queues": Unknown, "orphans": Unknown, "late": Unknown, "foreign": Unknown, "sequence": Unknown, "clock": Unknown},
		} {
			refuse := faultdriver.Path(path, faultdriver.Fail(driver.ErrNoAuth))
			c, err := zklock.OpenConfig(zklock.Config{Connector: faultdriver.Wrap(e.Connector(), faultdriver.If("reads", func(op faultdriver.Op) bool { return op.Kind == faultdriver.Children }, refuse))})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var r Report
			r.queues(t.Context(), c, 1<<20-1)
			got := make(map[string]Level)
			for _, f := range r.Findings[1:] {
				got[f.What] = f.Level
			}
			delete(got, "sessions")
			if f := r.Findings[0]; f.What != "queues" || f.Level != ToDo || !strings.Contains(f.Text, "cannot be read") || !maps.Equal(got, levels) {
				t.Errorf("without READ on %s: %+v", path, r.Findings)
			}
		}
	})
}
