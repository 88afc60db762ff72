package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// queued is a queue of a holder and a waiter, five seconds old.
func queued(t *testing.T, e *memdriver.Ensemble) *zklock.Client {
	t.Helper()
	c := client(t, e, zklock.WithIdentity(zklock.Identity{Host: "web-3", PID: 812}))
	hold(t, c.Mutex("orders/42"), zklock.WithLabel("POST /pay\x1b[2J"))
	other := client(t, e, zklock.WithIdentity(zklock.Identity{Host: "web-4"}))
	wait(t, c, "orders/42", 2, other.Mutex("orders/42"))
	time.Sleep(5 * time.Second)
	return c
}

func TestWhoShowsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		c := queued(t, e)
		queue, err := c.Contenders(t.Context(), "orders/42")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []struct{ flags, want string }{
			{"", "STATE MODE ASKED PROCESS LABEL NODE\n" +
				"holds exclusive 5s web-3/812 POST /pay\\x1b[2J " + node(queue[0]) + "\n" +
				"waits exclusive 5s web-4 - " + node(queue[1])},
			{"-o wide", "STATE MODE ASKED PROCESS LABEL NODE SESSION REVOCABLE REVOKED TRACE\n" +
				"holds exclusive 5s web-3/812 POST /pay\\x1b[2J " + node(queue[0]) + " " + operator.Hex(queue[0].Session) + " no - -\n" +
				"waits exclusive 5s web-4 - " + node(queue[1]) + " " + operator.Hex(queue[1].Session) + " no - -"},
			{"--tree", "web-3/812 holds exclusive, POST /pay\\x1b[2J, 5s\nweb-4 waits exclusive, -, 5s\n\n" +
				"at the end: web-3/812 \"POST /pay\\x1b[2J\" holds orders/42, and waits for no lock as far as is known: look at that process\nzklock revoke orders/42 " + node(queue[0]) + " --reason ''"},
		} {
			code, out, stderr := command(t, e, append([]string{"who", "orders/42"}, strings.Fields(f.flags)...)...)
			if got := squeeze(out); code != 0 || got != f.want || stderr != "" {
				t.Errorf("%s: %d, %s, %q\nwant %s", f.flags, code, got, stderr, f.want)
			}
		}
	})
}

// A deadlock that the name is in is below its queue. Both clients cannot list the register, so they do not
// end it.
func TestWhoShowsADeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		blind := faultdriver.If("about the register", func(op faultdriver.Op) bool {
			return len(op.Paths) > 0 && strings.HasSuffix(op.Paths[0], "/%waits")
		}, faultdriver.On(faultdriver.Children, faultdriver.Drop()))
		var waits sync.WaitGroup
		names := []string{"orders/42", "customers/7"}
		var clients []*zklock.Client
		var locks []*zklock.Lock
		for i, name := range names {
			c, err := zklock.OpenConnector(faultdriver.Wrap(e.Connector(), blind), zklock.WithIdentity(zklock.Identity{Host: "web", PID: i + 1}))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			clients, locks = append(clients, c), append(locks, hold(t, c.Mutex(name)))
		}
		for i, c := range clients {
			waits.Go(func() {
				ctx, cancel := locks[i].Context(t.Context())
				defer cancel()
				if _, err := c.Mutex(names[1-i]).Acquire(ctx, zklock.WithWait(time.Minute)); err == nil {
					t.Error("acquired")
				}
			})
		}
		time.Sleep(5 * time.Second)
		for _, c := range []struct {
			args string
			want bool
		}{{"who orders/42", true}, {"who --tree customers/7", true}, {"who other", false}, {"who -o json orders/42", false}} {
			code, out, stderr := command(t, e, strings.Fields(c.args)...)
			got := strings.Contains(squeeze(out), "\ndeadlock: each of these 2 waits for the next, and the last for the first\nweb/") &&
				strings.Contains(out, "web/1 holds orders/42 and waits for customers/7") &&
				strings.Contains(out, "web/2 holds customers/7 and waits for orders/42") && strings.Count(out, ": this wait fails, and the others go on\n") == 1
			if code != 0 || got != c.want {
				t.Errorf("%s: %d, %s%s", c.args, code, out, stderr)
			}
		}
		waits.Wait()
	})
}

// squeeze removes what aligns columns.
func squeeze(text string) string {
	var all []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		all = append(all, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(all, "\n")
}

// TestWhoAsJSON: keys in lower case, ids in hexadecimal text, times in RFC 3339, lists that are
// never null.
func TestWhoAsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		c := queued(t, e)
		queue, err := c.Contenders(t.Context(), "orders/42")
		if err != nil {
			t.Fatal(err)
		}
		code, out, _ := command(t, e, "who", "-o", "json", "orders/42")
		var got struct {
			Name, Path string
			Contenders []map[string]any
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || strings.Count(out, "\n") != 1 {
			t.Fatalf("%d, %v: %s", code, err, out)
		}
		want := map[string]any{"node": queue[0].Node, "zxid": operator.Hex(queue[0].Zxid), "session": operator.Hex(queue[0].Session), "host": "web-3", "pid": 812.0,
			"label": "POST /pay\x1b[2J", "trace": "", "mode": "exclusive", "held": true, "kept": false, "foreign": false, "revoked": "",
			"since": "2000-01-01T00:00:00.000Z", "held_since": nil, "waits_for_one": false}
		if len(got.Contenders) != 2 || len(got.Contenders[0]) != len(want)+1 || got.Name != "orders/42" || got.Path != "/zklock/orders%2F42" {
			t.Fatalf("%s", out)
		}
		if ahead, _ := got.Contenders[1]["waits_for"].([]any); len(ahead) != 1 || ahead[0] != queue[0].Node {
			t.Errorf("waits_for: %v", ahead)
		}
		for key, value := range want {
			if got.Contenders[0][key] != value {
				t.Errorf("%s: %v, want %v", key, got.Contenders[0][key], value)
			}
		}
		if _, out, _ := command(t, e, "who", "-o", "json", "unused"); out != `{"name":"unused","path":"/zklock/unused","contenders":[]}`+"\n" {
			t.Errorf("a name that is not in use: %s", out)
		}
	})
}

// TestReadersCreateNoRoot: without a root, all lists are empty, and there is no root afterwards.
func TestReadersCreateNoRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		for args, want := range map[string]string{"ls": "", "ls -o json": "[]\n", "who x": "", "who --tree x": "", "who -o json x": `{"name":"x","path":"/zklock/x","contenders":[]}` + "\n"} {
			// A table of nothing is explained; JSON says it itself.
			explained := strings.Contains(args, "json")
			code, out, stderr := command(t, e, strings.Fields(args)...)
			if code != 0 || out != want || (stderr == "") != explained || !explained && !strings.Contains(stderr, "the root of the URL does not exist") {
				t.Errorf("%s: %d, %q, %q", args, code, out, stderr)
			}
		}
		if after := e.Dump(); strings.Contains(after, "zklock") {
			t.Errorf("there is a root: %s", after)
		}
	})
}

// TestWhoShowsARevocation: a request to give the lock back, and its reason, are in the table.
func TestWhoShowsARevocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		c := client(t, e)
		hold(t, c.Mutex("x"))
		queue, err := c.Contenders(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, out, _ := command(t, e, "who", "-o", "wide", "x"); !strings.Contains(squeeze(out), " no - -") {
			t.Errorf("who does not say that the holder cannot be asked: %s", out)
		}
		code, out, stderr := command(t, e, "revoke", "x", node(queue[0]), "--reason", "maintenance")
		if code != 0 || out != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "does not look for one") {
			t.Fatalf("revoke of a holder without WithRevocable: %d, %q, %q", code, out, stderr)
		}
		if _, out, _ := command(t, e, "who", "x"); !strings.Contains(out, "REVOKED") || !strings.Contains(out, "maintenance") {
			t.Errorf("%s", out)
		}
	})
}

// TestRevokeOfAWaiter: a waiter, whose node was copied by mistake, is asked later, and the command says so.
func TestRevokeOfAWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		c, other := client(t, e), client(t, e)
		hold(t, c.Mutex("x"), zklock.WithRevocable())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := other.Mutex("x").Acquire(ctx, zklock.WithRevocable())
			done <- err
		}()
		synctest.Wait()
		queue, err := c.Contenders(t.Context(), "x")
		if err != nil || len(queue) != 2 {
			t.Fatal(queue, err)
		}
		for i, want := range []string{"", "it is asked when it holds the lock"} {
			code, out, stderr := command(t, e, "revoke", "x", node(queue[i]), "--reason", "maintenance")
			if code != 0 || out != "" || (stderr == "") != (want == "") || !strings.Contains(stderr, want) {
				t.Errorf("revoke of contender %d: %d, %q, %q, want %q", i, code, out, stderr, want)
			}
		}
		cancel()
		<-done
	})
}

// TestTreeOfAQueue: readers wait for the nearest writer, writers for the one just ahead, and
// permits for one another. A number is the depth.
func TestTreeOfAQueue(t *testing.T) {
	const w, r, p = zklock.Exclusive, zklock.Shared, zklock.Permit
	at := func(mode zklock.Mode, held bool, host string) zklock.Contender {
		return zklock.Contender{Mode: mode, Held: held, Host: host, Node: "_c_-__WRIT__"}
	}
	foreign := at(w, true, "curator")
	foreign.Foreign, foreign.Node = true, "_c_-lock-"
	for _, c := range []struct {
		queue []zklock.Contender
		want  string
	}{
		{nil, ""},
		{[]zklock.Contender{at(w, true, "a"), at(w, false, "b"), at(w, false, "c")}, "0a 1b 2c"},
		{[]zklock.Contender{at(r, true, "a"), at(r, true, "b"), at(w, false, "c"), at(r, false, "d"), at(r, false, "e"), at(w, false, "f")}, "0a 0b 1c 2d 2e 3f"},
		{[]zklock.Contender{at(p, true, "a"), at(p, true, "b"), at(p, false, "c"), at(p, false, "d")}, "0a 0b 1c 2d"},
		{[]zklock.Contender{at(w, true, "a"), foreign, at(w, false, "b")}, "0a 1b 0curator"},
	} {
		var b strings.Builder
		if err := writeTree(&b, c.queue, time.Now()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(b.String()) {
			depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
			got = append(got, fmt.Sprintf("%d%s", depth, strings.Fields(line)[0]))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s, want %s", text, c.want)
		}
	}
	long := make([]zklock.Contender, 5000)
	for i := range long {
		long[i] = at(w, i == 0, "h")
	}
	var b strings.Builder
	if err := writeTree(&b, long, time.Now()); err != nil || b.Len() > 1<<20 || !strings.Contains(b.String(), "(4999) h waits") {
		t.Errorf("a queue of 5000: %d bytes, %v", b.Len(), err)
	}
}

// TestTreeLeadsToTheCulprit: from a victim, also one whose request has no node in the queue of what it waits for,
// the flag --tree leads to the process that does nothing, and its next step is about that.
func TestTreeLeadsToTheCulprit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		as := func(host string) *zklock.Client {
			var traces atomic.Int64
			return client(t, e, zklock.WithIdentity(zklock.Identity{Host: host, PID: 1}), zklock.WithHooks(zklock.Hooks{Inject: func(context.Context) string {
				trace := traces.Add(1)
				return fmt.Sprintf("00-%032d-%016d-01", trace, trace)
			}}))
		}
		shop, stuck := as("shop-1"), as("stuck-9")
		hold(t, stuck.Mutex("stock"), zklock.WithLabel("recount"))
		for i, name := range []string{"cart/0", "cart/1", "cart/2"} {
			l := hold(t, shop.Mutex(name))
			ctx, cancel := l.Context(t.Context())
			t.Cleanup(cancel)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = shop.Mutex("stock").Acquire(ctx)
			}()
			t.Cleanup(func() { cancel(); <-done })
			if i == 0 {
				time.Sleep(time.Second)
			}
		}
		time.Sleep(5 * time.Second)
		for _, name := range []string{"cart/0", "cart/1", "cart/2", "stock"} {
			code, out, stderr := command(t, e, "who", "--tree", name)
			if code != 0 || stderr != "" || !strings.Contains(out, "\nat the end: stuck-9/1 \"recount\" holds stock, and waits for no lock as far as is known: look at that process\n  zklock revoke stock ") ||
				strings.Contains(out, "zklock revoke cart") || name != "stock" && !strings.Contains(out, "it waits for stock") {
				t.Errorf("%s: %d, %q\n%s", name, code, stderr, out)
			}
		}
	})
}
