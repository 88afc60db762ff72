package cli

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// stand stands for election until the test ends.
func stand(t testing.TB, c *zklock.Client, name string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = election.New(c, name, election.WithLogger(nil)).Run(ctx, func(ctx context.Context, _ *election.Term) error { <-ctx.Done(); return nil })
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	synctest.Wait()
}

// TestCandidaciesAreShownAsSuch: the lists say which process leads and which one is a candidate, and take
// neither for what is stuck.
func TestCandidaciesAreShownAsSuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		as := func(host string) *zklock.Client {
			return client(t, e, zklock.WithIdentity(zklock.Identity{Host: host, PID: 1}))
		}
		a, b := as("web-1"), as("web-2")
		stand(t, a, "reminders")
		stand(t, b, "reminders")
		time.Sleep(84 * time.Minute)
		hold(t, a.Mutex("orders/42"))
		wait(t, a, "orders/42", 2, b.Mutex("orders/42"))
		time.Sleep(time.Minute)
		if _, out, _ := command(t, e, "ls"); squeeze(out) != "NAME MODE HOLDER ASKED WAITERS LONGEST WAIT\norders/42 exclusive web-1/1 1m0s 1 1m0s\nreminders exclusive web-1/1 (leader) 1h25m0s 0 and 1 candidate -" {
			t.Errorf("ls:\n%s", out)
		}
		if _, out, _ := command(t, e, "who", "reminders"); !strings.Contains(squeeze(out), "\nleader exclusive 1h25m0s web-1/1") || !strings.Contains(squeeze(out), "\ncandidate exclusive 1h25m0s web-2/1") {
			t.Errorf("the queue:\n%s", out)
		}
		o := look(t.Context(), a, "", 5, "waiters", &operator.Holds{})
		if got := squeeze(strings.Join(o.lines(200), "\n")); !strings.Contains(got, "2 names in use, 1 waiting process, 1 candidate\n") || strings.Index(got, "orders/42") > strings.Index(got, "reminders") ||
			!strings.Contains(got, "reminders exclusive web-1/1 (leader) asked 1h25m0s ago 0 and 1 candidate -") {
			t.Errorf("top:\n%s", got)
		}
	})
}

// TestLsSorts: of many names, --sort puts those first that are stuck. Names without a waiter are
// behind, the oldest holder first and an election last.
func TestLsSorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		a, b := client(t, e), client(t, e)
		stand(t, a, "a")
		stand(t, b, "a")
		for _, name := range []string{"b", "c", "d", "e"} {
			hold(t, a.Mutex(name))
			time.Sleep(time.Second)
		}
		for i, name := range []string{"d", "e", "e"} {
			wait(t, b, name, 2+i/2, client(t, e).Mutex(name))
			time.Sleep(time.Second)
		}
		for by, want := range map[string]string{"": "a b c d e", "name": "a b c d e", "wait": "d e b c a", "waiters": "e d b c a", "age": "b c d e a"} {
			args := []string{"ls"}
			if by != "" {
				args = append(args, "--sort", by)
			}
			code, out, stderr := command(t, e, args...)
			var got []string
			for line := range strings.Lines(out) {
				got = append(got, strings.Fields(line)[0])
			}
			if text := strings.Join(got, " "); code != 0 || stderr != "" || text != "NAME "+want {
				t.Errorf("--sort %s: %d, %q: %s, want %s", by, code, stderr, text, want)
			}
		}
		for by, want := range map[order]string{"waiters": "e d b c a", "wait": "d e b c a", "age": "b c d e a", "name": "a b c d e"} { // top keeps some rows only
			o := look(t.Context(), a, "", 10, by, &operator.Holds{})
			var got []string
			for _, r := range o.rows {
				got = append(got, r.name)
			}
			if text := strings.Join(got, " "); text != want {
				t.Errorf("top --sort %s: %s, want %s", by, text, want)
			}
			if o := look(t.Context(), a, "", 1, by, &operator.Holds{}); o.rows[0].name != got[0] {
				t.Errorf("top --sort %s, on one line: %s", by, o.rows[0].name)
			}
		}
		if code, out, _ := command(t, e, "ls", "--sort", "wait", "-o", "json"); code != 0 || !strings.HasPrefix(out, `[{"name":"d"`) || !strings.HasSuffix(out, "}\n]\n") {
			t.Errorf("%d, %s", code, out)
		}
		if code, _, stderr := command(t, e, "ls", "--sort", "size"); code != 64 || !strings.Contains(stderr, "want one of name, wait, waiters, age") {
			t.Errorf("%d, %s", code, stderr)
		}
	})
}

// TestTopCountsInWords: one name is one name.
func TestTopCountsInWords(t *testing.T) {
	o := overview{limit: 5, at: time.Now()}
	o.add(zklock.LockInfo{Name: "orders/42", Contenders: []zklock.Contender{{Held: true}, {}}})
	if head := o.lines(80)[0]; !strings.HasSuffix(head, "  1 name in use, 1 waiting process") {
		t.Errorf("%q", head)
	}
}
