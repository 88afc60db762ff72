package faultdriver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// strikes asks inj about one create for each of the names (single letters), and returns the
// names that were struck.
func strikes(inj faultdriver.Injector, names string) string {
	var struck strings.Builder
	for _, name := range names {
		op := faultdriver.Op{Kind: faultdriver.Create, Session: 7, Paths: []string{"/x", "/locks/" + string(name)}}
		if !inj.Inject(op).IsNone() {
			struck.WriteRune(name)
		}
	}
	return struck.String()
}

func TestInjectorsStrikeAndPrint(t *testing.T) {
	drop, none := faultdriver.Drop(), faultdriver.None()
	isB := func(op faultdriver.Op) bool { return strings.HasSuffix(op.Paths[1], "b") }
	for _, c := range []struct {
		inj    faultdriver.Injector
		struck string // of abcabc
		text   string
	}{
		{none, "", "none"},
		{drop, "abcabc", "drop"},
		{faultdriver.On(faultdriver.Create, drop), "abcabc", "on(create, drop)"},
		{faultdriver.On(faultdriver.Delete, drop), "", "on(delete, drop)"},
		{faultdriver.Writes(drop), "abcabc", "writes(drop)"},
		{faultdriver.If("is b", isB, drop), "bb", "if(is b, drop)"},
		{faultdriver.Path("/locks/c", drop), "cc", "path(/locks/c, drop)"},
		{faultdriver.Path("/locks/[ab]", drop), "abab", "path(/locks/[ab], drop)"},
		{faultdriver.Path("/root", drop), "", "path(/root, drop)"},
		{faultdriver.Path("/locks/...", drop), "abcabc", "path(/locks/..., drop)"},
		{faultdriver.Path("/roo/...", drop), "", "path(/roo/..., drop)"},
		{faultdriver.Path("/locks/[", drop), "", "path(/locks/[, drop)"},
		{faultdriver.Once(drop), "a", "first(1, drop)"},
		{faultdriver.First(2, drop), "ab", "first(2, drop)"},
		{faultdriver.Nth(3, drop), "c", "nth(3, drop)"},
		{faultdriver.After(4, drop), "bc", "after(4, drop)"},
		{faultdriver.Nth(2, faultdriver.Path("/locks/b", drop)), "b", "nth(2, path(/locks/b, drop))"},
		{faultdriver.Nth(1, faultdriver.LoseEvent()), "", "nth(1, lose-event)"},
		{faultdriver.Any(), "", "any()"},
		{faultdriver.Any(faultdriver.Nth(1, drop), faultdriver.Nth(1, drop)), "ab", "any(nth(1, drop), nth(1, drop))"},
		{faultdriver.Script(none, drop, none, drop), "ba", "script(none, drop, none, drop)"},
		{faultdriver.Random(1, 1, drop), "abcabc", "random(seed=1, rate=1, drop)"},
		{faultdriver.Random(1, 0, drop), "", "random(seed=1, rate=0, drop)"},
		{faultdriver.Random(1, 1), "", "random(seed=1, rate=1, )"},
	} {
		if got := c.inj.String(); got != c.text {
			t.Errorf("prints as %q, want %q", got, c.text)
		}
		if got := strikes(c.inj, "abcabc"); got != c.struck {
			t.Errorf("%v struck %q of abcabc, want %q", c.inj, got, c.struck)
		}
	}
}

func TestFaultsPrint(t *testing.T) {
	var gate faultdriver.Gate
	for _, c := range []struct {
		fault faultdriver.Fault
		text  string
	}{
		{faultdriver.Fail(driver.ErrNoAuth), `fail("not authorized")`},
		{faultdriver.NotSent(), "not-sent"},
		{faultdriver.LoseReply(), "lose-reply"},
		{faultdriver.Late(&gate), "late"},
		{faultdriver.LateAfter(2e9), "late-after(2s)"},
		{faultdriver.Delay(1e9), "delay(1s)"},
		{faultdriver.Delay(-1), "delay(0s)"},
		{faultdriver.DelayReply(1e9), "delay-reply(1s)"},
		{faultdriver.Hang(), "hang"},
		{faultdriver.HangReply(), "hang-reply"},
		{faultdriver.DelayEvent(1e9), "delay-event(1s)"},
	} {
		if got := c.fault.String(); got != c.text {
			t.Errorf("prints as %q, want %q", got, c.text)
		}
		if c.fault.IsNone() {
			t.Errorf("IsNone is true for %v", c.fault)
		}
	}
}

func TestRandomRepeatsItselfAndNestsByRate(t *testing.T) {
	names := strings.Repeat("abcdefghij", 50)
	for seed := range uint64(5) {
		struck := strikes(faultdriver.Random(seed, 0.2, faultdriver.Drop()), names)
		if again := strikes(faultdriver.Random(seed, 0.2, faultdriver.Drop()), names); again != struck {
			t.Fatalf("seed %d struck %q, and the second time %q", seed, struck, again)
		}
		if other := strikes(faultdriver.Random(seed+100, 0.2, faultdriver.Drop()), names); other == struck {
			t.Errorf("seeds %d and %d strike the same operations", seed, seed+100)
		}
		if n := len(struck); n < 50 || n > 150 {
			t.Errorf("seed %d: %d of 500 operations struck at rate 0.2, want 50 to 150", seed, n)
		}
		few, many := faultdriver.Random(seed, 0.1, faultdriver.Drop()), faultdriver.Random(seed, 0.3, faultdriver.Drop())
		for i, name := range names {
			op := faultdriver.Op{Kind: faultdriver.Create, Paths: []string{"/", string(name)}}
			if f, m := few.Inject(op), many.Inject(op); !f.IsNone() && m.IsNone() {
				t.Fatalf("seed %d: operation %d is struck at rate 0.1 and not at 0.3", seed, i)
			}
		}
	}
}

func TestToggleCounterAndLogObserve(t *testing.T) {
	toggle := faultdriver.NewToggle(faultdriver.Path("/locks/b", faultdriver.Drop()))
	counter := faultdriver.NewCounter(toggle)
	log := faultdriver.NewLog(counter)
	for range 2 {
		if got := strikes(log, "abc"); got != "" {
			t.Fatalf("the toggle is off, and %q were struck", got)
		}
		toggle.On()
		if got := strikes(log, "abcb"); got != "bb" {
			t.Fatalf("the toggle is on, and %q were struck, want bb", got)
		}
		toggle.Off()
	}
	if counter.Seen() != 14 || counter.Struck() != 4 {
		t.Errorf("the counter has %d struck of %d seen, want 4 of 14", counter.Struck(), counter.Seen())
	}
	if got := log.Strikes(); len(got) != 4 || got[3].Op.Paths[1] != "/locks/b" || got[3].Fault != faultdriver.Drop() {
		t.Errorf("the log has %v, want 4 strikes of drop, the last on /locks/b", got)
	}
	const want = "counter(toggle(path(/locks/b, drop))): 4 struck\n" + "\t#0 create /x,/locks/b session 0x7: drop\n"
	if got := log.Text(); !strings.HasPrefix(got, want) || log.String() != "log(counter(toggle(path(/locks/b, drop))))" {
		t.Errorf("the log's text is %q, and it prints as %v; want a text that begins with %q", got, log, want)
	}
	// A fault that cannot strike an operation of that kind is not counted.
	idle := faultdriver.NewCounter(faultdriver.NewLog(faultdriver.LoseEvent()))
	idle.Inject(faultdriver.Op{Kind: faultdriver.Get})
	if idle.Struck() != 0 {
		t.Error("the counter counts a lost event for a get")
	}
}

func TestErrorNamesOperationFaultAndMeaning(t *testing.T) {
	var err error = &faultdriver.Error{
		Op:    faultdriver.Op{Kind: faultdriver.Delete, Session: 0x1f, Paths: []string{"/a"}, Seq: 3, Attempt: 2},
		Fault: faultdriver.LoseReply(),
		Err:   driver.ErrConnLoss,
	}
	const want = "faultdriver: #3 delete /a session 0x1f attempt 2 by lose-reply: connection lost, outcome unknown"
	if err.Error() != want || !errors.Is(err, driver.ErrConnLoss) {
		t.Errorf("error is %q, want %q", err, want)
	}
}

// The function of Control may hold one operation back while others pass.
func TestControlMayBlock(t *testing.T) {
	ctx := context.Background()
	e := memdriver.New()
	defer e.Close()
	held, release := make(chan struct{}), make(chan struct{})
	c := faultdriver.Control(e.Connector(), func(op faultdriver.Op) faultdriver.Fault {
		if op.Kind != faultdriver.Sync {
			return faultdriver.None()
		}
		close(held)
		<-release
		return faultdriver.Drop()
	})
	s, err := c.Connect(ctx, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(ctx)
	result := make(chan error)
	go func() { result <- s.Sync(ctx, "/") }()
	<-held
	if _, err := s.Get(ctx, "/"); err != nil {
		t.Errorf("get while another operation is held back: %v", err)
	}
	close(release)
	if err := <-result; !errors.Is(err, driver.ErrConnLoss) {
		t.Errorf("sync: error %v, want ErrConnLoss, from the fault that the function returned", err)
	}
}
