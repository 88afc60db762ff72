package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

// plays are scripts for locks of all kinds. A line is the action of one client and, after the
// colon, the results that clients then get, in any order. Or it is "queue", a name, and that
// name's contenders, in order.
var plays = map[string]string{
	"mutex": `
		a mutex x: a held
		b mutex x: b waits
		c mutex x: c waits
		queue x: a exclusive held, b exclusive, c exclusive
		b leaves: b not acquired
		queue x: a exclusive held, c exclusive
		a releases: c held
		a try mutex x: a not acquired
		c releases:
		a try mutex x: a held
		a releases:`,
	"readers and writers": `
		a reader x: a held
		b reader x: b held
		c writer x: c waits
		d reader x: d waits
		queue x: a shared held, b shared held, c exclusive, d shared
		a releases:
		b releases: c held
		a try reader x: a not acquired
		c downgrades: d held
		queue x: c shared held, d shared held
		a try reader x: a held
		b try writer x: b not acquired
		c releases:
		d releases:
		a releases:`,
	"a writer among readers gives up": `
		a reader x: a held
		b writer x: b waits
		c reader x: c waits
		b leaves: b not acquired, c held
		a releases:
		c releases:`,
	"permits": `
		a permit x: a held
		b permit x: b held
		c permit x: c waits
		d permit x: d waits
		queue x: a permit held, b permit held, c permit, d permit
		b releases: c held
		a releases: d held
		a try permit x: a not acquired
		d releases:
		a try permit x: a held
		a releases:
		c releases:`,
	"a waiter for a permit gives up": `
		a permit x: a held
		b permit x: b held
		c permit x: c waits
		d permit x: d waits
		c leaves: c not acquired
		a releases: d held
		b releases:
		d releases:`,
	"kinds that do not know each other": `
		a mutex x: a held
		b permit x: b conflict
		c try permit x: c conflict
		a releases:
		b permit x: b held
		a reader x: a conflict
		queue x: b permit held
		b releases:`,
	"all": `
		a all x y: a held
		b reader y: b waits
		c all y x: c waits
		queue x: a exclusive held, c exclusive
		queue y: a exclusive held, b shared, c exclusive
		a releases: b held
		d try writer x: d not acquired
		b releases: c held
		c releases:`,
	"all with a reader": `
		a all x, read y: a held
		b reader y: b held
		c writer y: c waits
		d reader x: d waits
		a releases: d held
		b releases: c held
		c releases:
		d releases:`,
	"an operator": `
		a mutex x: a held
		b mutex x: b waits
		operator breaks a in x: a lost, b held
		b releases:`,
}

// TestKindsOfLocks runs the same plays on mem:// and on a real server. So users' tests on
// mem:// get the same results as on ZooKeeper.
func TestKindsOfLocks(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	server := ensemble.Start(t, ensemble.Config{})
	testKindsOfLocks(t, map[string]opener{
		"mem": func(t *testing.T, root string, opts ...zklock.Option) *zklock.Client {
			c, err := zklock.Open("mem://kinds"+root, opts...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			return c
		},
		"zk": func(t *testing.T, root string, opts ...zklock.Option) *zklock.Client {
			return dial(t, server.Hosts(), quick(), opts...)
		},
	})
}

// opener opens a client with a root.
type opener func(t *testing.T, root string, opts ...zklock.Option) *zklock.Client

// testKindsOfLocks runs all plays with the clients of each opener.
func testKindsOfLocks(t *testing.T, engines map[string]opener) {
	for engine, open := range engines {
		for name, play := range plays {
			t.Run(engine+"/"+name, func(t *testing.T) {
				s := stage{T: t, actors: map[string]*actor{}}
				root := rootOf(t)
				for _, who := range []string{"a", "b", "c", "d"} {
					a := &actor{name: who, told: make(chan string, 8)}
					a.client = open(t, root, zklock.WithHooks(zklock.Hooks{Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
						a.told <- "waits"
						return ctx, nil
					}}))
					s.actors[who] = a
				}
				for line := range strings.SplitSeq(strings.TrimSpace(play), "\n") {
					s.act(strings.TrimSpace(line))
				}
				for _, x := range []string{"x", "y"} {
					s.queue(x, "")
				}
			})
		}
	}
}

type stage struct {
	*testing.T
	actors map[string]*actor
}

// actor is one of a play's clients, with at most one lock.
type actor struct {
	name   string
	client *zklock.Client
	cancel context.CancelFunc // cancels the acquisition under way
	told   chan string        // the results that the actor gets
	lock   *zklock.Lock
}

// act performs a line's action, and compares the results.
func (s stage) act(line string) {
	s.Helper()
	what, told, _ := strings.Cut(line, ":")
	words, told := strings.Fields(what), strings.TrimSpace(told)
	switch a := s.actors[words[0]]; {
	case words[0] == "queue":
		s.queue(words[1], told)
		return
	case words[0] == "operator":
		s.breaks(words[2], words[4])
	case words[1] == "releases":
		release(s.T, a.lock)
	case words[1] == "leaves":
		a.cancel()
	case words[1] == "downgrades":
		if err := a.lock.Downgrade(within(s)); err != nil {
			s.Fatalf("%s: %v", line, err)
		}
	default:
		a.acquires(s.T, words[1:])
	}
	for told != "" {
		var one string
		one, told, _ = strings.Cut(told, ", ")
		who, want, _ := strings.Cut(one, " ")
		select {
		case got := <-s.actors[who].told:
			if got != want {
				s.Fatalf("%s: the result of %s is %q, want %q", line, who, got, want)
			}
		case <-time.After(patience):
			s.Fatalf("%s: %s gets no result, want %q", line, who, want)
		}
	}
}

// acquires starts an acquisition, which sends its outcome to the actor's channel.
func (a *actor) acquires(t *testing.T, words []string) {
	ctx, cancel := context.WithCancel(within(t))
	a.cancel = cancel
	acquire := zklock.Acquirer.Acquire
	if words[0] == "try" {
		acquire, words = zklock.Acquirer.TryAcquire, words[1:]
	}
	var what zklock.Acquirer
	switch name := words[1]; words[0] {
	case "mutex":
		what = a.client.Mutex(name)
	case "reader":
		what = a.client.RWMutex(name).Reader()
	case "writer":
		what = a.client.RWMutex(name).Writer()
	case "permit":
		what = a.client.Semaphore(name, 2)
	case "all":
		if name, ok := strings.CutSuffix(name, ","); ok {
			what = zklock.All(a.client.Mutex(name), a.client.RWMutex(words[3]).Reader())
		} else {
			what = zklock.All(a.client.Mutex(name), a.client.Mutex(words[2]))
		}
	}
	go func() {
		defer cancel()
		l, err := acquire(what, ctx, zklock.WithLabel(a.name))
		if err != nil {
			a.told <- outcome(err)
			return
		}
		a.lock = l
		a.told <- "held"
		<-l.Done()
		if errors.Is(l.Err(), zklock.ErrLost) {
			a.told <- "lost"
		}
	}()
}

func outcome(err error) string {
	switch {
	case errors.Is(err, zklock.ErrNotAcquired):
		return "not acquired"
	case errors.Is(err, zklock.ErrConflict):
		return "conflict"
	}
	return err.Error()
}

// queue waits until a name's queue is as wanted. A waiter that gives up leaves the queue in
// the background, and so a little later.
func (s stage) queue(name, want string) {
	s.Helper()
	var got string
	defer func() {
		if got != want {
			s.Errorf("the queue of %s is %q, want %q", name, got, want)
		}
	}()
	eventually(s.T, "the queue of "+name+" is "+want, func() bool {
		queue, err := s.actors["d"].client.Contenders(within(s), name)
		if err != nil {
			s.Fatal(err)
		}
		var all []string
		for _, c := range queue {
			one := fmt.Sprint(c.Label, " ", c.Mode)
			if c.Held {
				one += " held"
			}
			all = append(all, one)
		}
		got = strings.Join(all, ", ")
		return got == want
	})
}

// breaks breaks the place of an actor in a name's queue, as an operator does.
func (s stage) breaks(who, name string) {
	c := s.actors["d"].client
	queue, err := c.Contenders(within(s), name)
	if err != nil {
		s.Fatal(err)
	}
	i := slices.IndexFunc(queue, func(c zklock.Contender) bool { return c.Label == who })
	if i < 0 {
		s.Fatalf("%s is not in the queue of %s", who, name)
	}
	if err := c.Break(within(s), name, queue[i].Node); err != nil {
		s.Fatal(err)
	}
}
