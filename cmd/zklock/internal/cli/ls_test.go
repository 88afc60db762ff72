package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/once"
)

func TestLsListsTheNamesInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		c := queued(t, e)
		hold(t, c.RWMutex("prices").Reader())
		hold(t, client(t, e).RWMutex("prices").Reader())
		queue, err := c.Contenders(t.Context(), "orders/42")
		if err != nil {
			t.Fatal(err)
		}
		for args, want := range map[string]string{
			"ls":         "NAME MODE HOLDER ASKED WAITERS LONGEST WAIT\norders/42 exclusive web-3/812 5s 1 5s\nprices shared web-3/812 and 1 more 0s 0 -",
			"ls orders":  "NAME MODE HOLDER ASKED WAITERS LONGEST WAIT\norders/42 exclusive web-3/812 5s 1 5s",
			"ls nothing": "",
			"ls -o wide o": "NAME MODE HOLDER ASKED WAITERS LONGEST WAIT LABEL NODE SESSION PATH\norders/42 exclusive web-3/812 5s 1 5s POST /pay\\x1b[2J " +
				node(queue[0]) + " " + operator.Hex(queue[0].Session) + " /zklock/orders%2F42",
		} {
			says := map[string]string{"ls nothing": "zklock: no name that begins with \"nothing\" is in use\n"}[args]
			if code, out, stderr := command(t, e, strings.Fields(args)...); code != 0 || squeeze(out) != want || stderr != says {
				t.Errorf("%s: %d, %s, %q\nwant %s", args, code, squeeze(out), stderr, want)
			}
		}
		_, out, _ := command(t, e, "ls", "-o", "json")
		var got []operator.Lock
		if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 2 || got[1].Name != "prices" || len(got[1].Contenders) != 2 {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// TestLsShowsSlots: names under which jobs run once are listed with the slot that has run last, whether they are in use
// or not, in all orders. A job that has only failed has no slot.
func TestLsShowsSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		c := queued(t, e)
		for name, slot := range map[string]string{"nightly": "2026-11-22", "a\\b": "7", "orders/42x": "8"} {
			if _, err := once.Do(t.Context(), c, name, slot, func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := once.Do(t.Context(), c, "fails", "1", func(context.Context) error { return io.EOF }); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		hold(t, c.Mutex("nightly"))
		const title = "NAME MODE HOLDER ASKED WAITERS LONGEST WAIT LAST SLOT RAN\n"
		const orders, nightly = "orders/42 exclusive web-3/812 1h0m5s 1 1h0m5s - -\n", "nightly exclusive web-3/812 0s 0 - 2026-11-22 1h0m0s ago\n"
		const a, x = "a\\\\b - - - 0 - 7 1h0m0s ago\n", "orders/42x - - - 0 - 8 1h0m0s ago\n"
		for args, want := range map[string]string{
			"ls":             title + a + nightly + orders + x,
			"ls orders/":     title + orders + x,
			"ls --sort wait": title + orders + nightly + a + x,
			"ls orders/42x":  title + x,
		} {
			if code, out, stderr := command(t, e, strings.Fields(args)...); code != 0 || squeeze(out)+"\n" != want || stderr != "" {
				t.Errorf("%s: %d, %q, %q\nwant %q", args, code, squeeze(out), stderr, want)
			}
		}
		_, out, _ := command(t, e, "ls", "-o", "json", "nightly")
		var got []operator.Lock
		if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 1 || got[0].LastSlot != "2026-11-22" || len(got[0].Contenders) != 1 ||
			got[0].SlotSince != operator.MillisOf(time.Now().Add(-time.Hour)) {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// slowConnector makes sessions whose lists take four seconds.
type slowConnector struct{ driver.Connector }

func (c slowConnector) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	s, err := c.Connector.Connect(ctx, timeout)
	return slowSession{s}, err
}

type slowSession struct{ driver.Session }

func (s slowSession) Children(ctx context.Context, path string) ([]string, driver.Stat, error) {
	time.Sleep(4 * time.Second)
	return s.Session.Children(ctx, path)
}

// TestLsShowsAgesOfTheMomentItPrints: an answer that takes seconds makes no age too small, in any order.
func TestLsShowsAgesOfTheMomentItPrints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		hold(t, client(t, e).Mutex("x"))
		began := time.Now()
		open := func(cfg zklock.Config, opts ...zklock.Option) (*zklock.Client, error) {
			cfg.Connector, cfg.ConnectTimeout = slowConnector{e.Connector()}, time.Minute
			return zklock.OpenConfig(cfg, opts...)
		}
		for _, args := range []string{"ls", "ls --sort age"} {
			var out, stderr strings.Builder
			code := execute(t.Context(), strings.Fields(args), &out, &stderr, env("mem://"), open)
			if want := " " + time.Since(began).String() + " "; code != 0 || !strings.Contains(squeeze(out.String()), want) {
				t.Errorf("%s: %d, %q, %q, want the age%s", args, code, out.String(), stderr.String(), want)
			}
		}
	})
}

// TestTopShowsAgesOfTheMomentItPrints: the same for the screen of top.
func TestTopShowsAgesOfTheMomentItPrints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		c, err := zklock.OpenConnector(slowConnector{e.Connector()})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		hold(t, c.Mutex("x"))
		o := look(t.Context(), c, "", 10, "waiters", &operator.Holds{})
		if text := strings.Join(o.lines(200), "\n"); !strings.Contains(text, "asked 8s ago") || !o.at.Equal(time.Now()) {
			t.Errorf("at %v, now %v:\n%s", o.at, time.Now(), text)
		}
	})
}

// TestLsUsageErrors: mistakes on the command line have the code 64, and one line.
func TestLsUsageErrors(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	for _, args := range []string{"ls a b", "ls -o yaml", "ls --bogus", "who", "who a b", "who a/../b", "who --tree -o json x", "release x", "release x y",
		"release x y@", "release x y@0", "release x y@-5", "release x @5", "release x y@xyz", "bogus", "doctor now"} {
		code, out, stderr := command(t, e, strings.Fields(args)...)
		if code != 64 || out != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "zklock: ") {
			t.Errorf("%s: %d, %q, %q", args, code, out, stderr)
		}
	}
}

// brokenPipe is an output whose reader has left.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestLsReportsThatItCannotWrite: an output that is not complete is a failure.
func TestLsReportsThatItCannotWrite(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	open := func(cfg zklock.Config, opts ...zklock.Option) (*zklock.Client, error) {
		cfg.Connector = e.Connector()
		return zklock.OpenConfig(cfg, opts...)
	}
	for _, args := range []string{"ls -o json", "who -o json x"} {
		var stderr strings.Builder
		if code := execute(t.Context(), strings.Fields(args), brokenPipe{}, &stderr, env("mem://"), open); code != 125 || !strings.Contains(stderr.String(), "write the output") {
			t.Errorf("%s: %d, %s", args, code, stderr.String())
		}
	}
}

// TestReleaseTakesTheVeryNode: if the node with that name has another zxid, or has left the queue,
// release deletes nothing, and the exit code is 1.
func TestReleaseTakesTheVeryNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		c := queued(t, e)
		queue, err := c.Contenders(t.Context(), "orders/42")
		if err != nil {
			t.Fatal(err)
		}
		holder := queue[0]
		release := func(id string) (int, string) {
			code, out, stderr := command(t, e, "release", "orders/42", id)
			if out != "" {
				t.Errorf("printed %q", out)
			}
			return code, stderr
		}
		before := memcontrol.Of(e).Ops()
		if code, text := release(fmt.Sprintf("%s@%#x", holder.Node, holder.Zxid+1)); code != 1 || !strings.Contains(text, "another contender") {
			t.Errorf("another zxid: %d, %s", code, text)
		}
		if after := memcontrol.Of(e).Ops(); after.Children != before.Children {
			t.Errorf("the queue was listed: what is compared may be another node than what is deleted: %+v, then %+v", before, after)
		}
		if code, text := release("no-such-node@0x1"); code != 1 || !strings.Contains(text, "nothing was deleted") {
			t.Errorf("another node: %d, %s", code, text)
		}
		if now, err := c.Contenders(t.Context(), "orders/42"); err != nil || len(now) != 2 {
			t.Fatalf("%v, %v, want that both are there", now, err)
		}
		if code, text := release(node(holder)); code != 0 || text != "" {
			t.Errorf("%d, %s", code, text)
		}
		if code, _ := release(fmt.Sprintf("%s@%x", holder.Node, holder.Zxid)); code != 1 {
			t.Errorf("a second time: %d", code)
		}
	})
}

// TestSessionTimeoutOfRun: if the URL sets a session timeout, run uses that, and not its own
// default.
func TestSessionTimeoutOfRun(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"mem://h/x":                      30 * time.Second,
		"mem://h/x?tick_time=1s":         30 * time.Second,
		"mem://h/x?session_timeout=12s":  12 * time.Second,
		"mem://h/x?session%5Ftimeout=9s": 9 * time.Second,
	} {
		a := &app{getenv: env(text)}
		if cfg, err := a.wrapping(); err != nil || cfg.SessionTimeout != want {
			t.Errorf("%s: %v, %v, want %v", text, cfg.SessionTimeout, err, want)
		}
	}
	_, err := (&app{getenv: env("mem://h/x?session_timeout=")}).wrapping()
	if f := asFailure(err); f == nil || f.code != 78 {
		t.Errorf("a URL with a bad value: %v", err)
	}
}
