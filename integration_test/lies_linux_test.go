package integration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/contrib/locktest"
	"github.com/zklock/go-zklock/contrib/locktest/fault"
	past "github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// lied is a lie, and how much longer than a session timeout after its newest write a liar believes in its lock.
type lied struct {
	lie    string
	longer float64 // a part of the session timeout
}

// TestServersLogsFindLies: a small lock library is honest, or not, at ticks of 2 s and the default session timeout, while its
// clients are cut off. The logs of the servers convict it of each lie, and never while it is honest. How many of the expiries show a lease
// that is too long is a matter of ticks: a session lasts up to one and a half longer than its timeout. A renewal that counts from its
// reply shows where replies take long.
func TestServersLogsFindLies(t *testing.T) {
	timeout := 6 * time.Second
	lies := []lied{{lie: tooOld}, {lie: tooSoon}}
	if long.On() {
		timeout = 30 * time.Second
		lies = append(lies, lied{tooLate, 0}, lied{honest, 0}, lied{honest, 0.05}, lied{honest, 0.1})
	}
	lies = append(lies, lied{honest, 1})
	ensemble.Require(t)
	for _, l := range lies {
		t.Run(fmt.Sprintf("%s %v longer", l.lie, l.longer), func(t *testing.T) {
			t.Parallel()
			s := lie(t, l, timeout)
			t.Logf("\n%s", s.Table("a liar"))
			if s.Judged == 0 || s.Unknown > 0 {
				t.Fatalf("%+v", s)
			}
			switch {
			case l.lie == tooOld && s.Tokens < s.Judged/2, l.lie == tooSoon && s.Early == 0, l.longer > 0.2 && s.Outlived == 0,
				long.On() && (l.lie == tooLate || l.longer > 0) && s.Outlived == 0:
				t.Errorf("the logs do not show the lie: %+v", s)
			case l.lie == honest && l.longer == 0 && !s.Passed():
				t.Errorf("the logs convict it: %+v", s)
			}
		})
	}
}

// lie runs a liar on servers with ticks of 2 s, and judges it. A lease is a matter of eight quiet clients, all of which are cut off twice;
// a token and a grant are one of three that compete.
func lie(t *testing.T, l lied, timeout time.Duration) judge.Servers {
	e := ensemble.Start(t, ensemble.Config{Servers: 3, TickTime: 2 * time.Second, SyncLimit: 5, InitLimit: 10})
	conn := dialRaw(t, e.Hosts(), 10*time.Second)
	c := locktest.Config{Workers: 3, Clients: 1, Names: []string{"one"}, Long: []string{"two", "three"}}
	if l.lie == honest || l.lie == tooLate {
		c = locktest.Config{Workers: 8, Alone: true, Names: []string{"one"}}
		for i := range c.Workers {
			c.Long = append(c.Long, fmt.Sprint("held-", i))
		}
	}
	for _, p := range append([]string{"", c.Names[0]}, c.Long...) {
		if _, err := conn.Create(path.Join(liarRoot, p), nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(task{Role: "liar", Liar: &liarTask{Lie: l.lie, Longer: l.longer}})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cut := fault.Fault{Kind: fault.FadeOut, After: timeout, Lasts: (2 + time.Duration(l.longer)) * timeout} // by then all hold
	if l.lie == tooLate {
		cut.Delay = timeout / 16
	}
	servers := newBreakable(e)
	c.Worker, c.Env, c.Ensemble, c.Faults = []string{self}, []string{workerEnv + "=" + string(text)}, servers, []fault.Fault{cut, cut}
	c.TTL, c.Settle, c.Progress, c.Stderr = timeout, 2*timeout, &chaosLog{t: t}, os.Stderr
	events, err := locktest.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	stays, err := judge.ReadStays(servers.Logs())
	if err != nil {
		t.Fatal(err)
	}
	events = slices.DeleteFunc(events, func(e past.Event) bool { return e.Kind == past.Failed })
	return judge.JudgeServers(events, stays)
}
