package integration_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
)

// contest is an election on three real servers, with two candidates and an operator, each at
// another server. The first candidate's connection goes through a proxy.
type contest struct {
	link  *proxy.Proxy
	op    *zklock.Client
	seen  *election.Election // by op
	a, b  *election.Election
	stuck chan bool // of b: whether the term was valid
}

// Sessions of the first candidate expire soon if the bug needs that. Other sessions must not expire,
// also on a busy machine.
var (
	brief  = quick("session_timeout", "4s", "pool_max_sessions", "1")
	steady = quick("pool_max_sessions", "1")
)

func newContest(t *testing.T, e *ensemble.Ensemble, a url.Values) *contest {
	t.Helper()
	link, err := proxy.New(e.Server(0).Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	c := &contest{link: link, op: dial(t, e.Server(2).Addr(), steady), stuck: make(chan bool, 100)}
	c.seen = election.New(c.op, "billing")
	c.a = election.New(dial(t, link.Addr(), a), "billing", election.WithValue("a"), election.WithLogger(nil))
	c.b = election.New(dial(t, e.Server(1).Addr(), steady), "billing", election.WithValue("b"), election.WithLogger(nil),
		election.WithStuck(50*time.Millisecond, func(t *election.Term) { c.stuck <- t.Valid() }))
	return c
}

// campaign leads without a rival.
func (c *contest) campaign(t *testing.T, e *election.Election) *election.Term {
	t.Helper()
	term, err := e.Campaign(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return term
}

// leads checks that the candidate with the value want leads now. If want is "", no candidate may
// lead.
func (c *contest) leads(t *testing.T, want string) {
	t.Helper()
	l, err := c.seen.Leader(within(t))
	if want == "" && !errors.Is(err, election.ErrNoLeader) || want != "" && (err != nil || l.Value != want) {
		t.Errorf("leader %+v, %v, want %q", l, err, want)
	}
}

// running begins a Run, and returns the functions that end its context and wait for its end.
func running(t *testing.T, e *election.Election, lead func(context.Context, *election.Term) error) (stop context.CancelFunc, wait func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx, lead) }()
	var waited bool
	wait = func() error {
		waited = true
		return receive(t, "the end of Run", ended)
	}
	t.Cleanup(func() {
		cancel()
		if !waited {
			wait()
		}
	})
	return cancel, wait
}

func resign(t *testing.T, term *election.Term) {
	t.Helper()
	if err := term.Resign(within(t)); err != nil {
		t.Errorf("resign: %v", err)
	}
}

// electionBugs are the bugs of other elections that docs/elections.md lists. Package election
// has a test for each in virtual time; here is one on a real server.
var electionBugs = []struct {
	bug string
	a   url.Values // the parameters of the first candidate
	run func(t *testing.T, c *contest)
}{
	{"the lock is released while the leader works", steady, func(t *testing.T, c *contest) {
		began, work := make(chan *election.Term, 1), make(chan struct{})
		stop, wait := running(t, c.a, func(ctx context.Context, term *election.Term) error {
			began <- term
			<-ctx.Done()
			<-work
			return nil
		})
		receive(t, "the first term", began)
		second := campaigning(t, c.b)
		awaitCandidates(t, c.op, "billing", 2)
		stop()
		time.Sleep(time.Second) // a release would have let the next candidate lead long ago
		c.leads(t, "a")
		if len(second) > 0 {
			t.Error("another leads while the first works")
		}
		close(work)
		resign(t, receive(t, "the second term", second))
		if err := wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	}},
	{"a lost term ends the candidacy", brief, func(t *testing.T, c *contest) {
		began := make(chan *election.Term, 10)
		running(t, c.a, func(ctx context.Context, term *election.Term) error {
			began <- term
			<-ctx.Done()
			return nil
		})
		first := receive(t, "the first term", began)
		c.link.Blackhole(proxy.Both)
		receive(t, "the end of the first term", first.Done())
		awaitCandidates(t, c.op, "billing", 0)
		c.link.Heal()
		second := receive(t, "the second term", began)
		if err := c.op.Break(within(t), "billing", awaitCandidates(t, c.op, "billing", 1)[0].Node); err != nil {
			t.Error(err)
		}
		third := receive(t, "the third term", began)
		if !errors.Is(second.Err(), zklock.ErrLost) || third.Token().Compare(second.Token()) <= 0 || second.Token().Compare(first.Token()) <= 0 {
			t.Errorf("tokens %v, %v and %v; the second term ended with %v", first.Token(), second.Token(), third.Token(), second.Err())
		}
	}},
	{"a process answers from memory that it leads", brief, func(t *testing.T, c *contest) {
		first := c.campaign(t, c.a)
		c.leads(t, "a")
		if l, err := c.a.Leader(within(t)); err != nil || l.Value != "a" {
			t.Errorf("the leader answers %+v, %v", l, err)
		}
		second := campaigning(t, c.b)
		awaitCandidates(t, c.op, "billing", 2)
		c.link.Blackhole(proxy.Both)
		term := receive(t, "the second term", second)
		if first.Valid() {
			t.Error("the first term is valid while another candidate leads")
		}
		c.leads(t, "b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if l, err := c.a.Leader(ctx); err == nil {
			t.Errorf("the former leader, without a connection, answers %+v", l)
		}
		c.link.Heal()
		resign(t, term)
		c.leads(t, "")
	}},
	{"observers do not learn that no candidate leads", brief, func(t *testing.T, c *contest) {
		ctx, cancel := context.WithCancel(t.Context())
		states := make(chan string, 100)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for l, err := range election.New(c.op, "billing").Observe(ctx) {
				switch {
				case err == nil:
					states <- l.Value
				case errors.Is(err, election.ErrNoLeader):
					states <- "none"
				}
			}
		}()
		defer func() { cancel(); <-done }()
		next := func(want string) {
			t.Helper()
			if got := receive(t, "a state", states); got != want {
				t.Errorf("observed %q, want %q", got, want)
			}
		}
		next("none")
		term := c.campaign(t, c.a)
		next("a")
		resign(t, term)
		next("none")
		c.campaign(t, c.a)
		next("a")
		c.link.Blackhole(proxy.Both)
		next("none") // when the session has expired
		c.link.Heal()
	}},
	{"a resignation that fails is forgotten", steady, func(t *testing.T, c *contest) {
		term := c.campaign(t, c.a)
		second := campaigning(t, c.b)
		awaitCandidates(t, c.op, "billing", 2)
		c.link.Blackhole(proxy.Both)
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			if err := term.Resign(ctx); !errors.Is(err, zklock.ErrReleasePending) {
				t.Errorf("a resignation that does not arrive: %v, want %v", err, zklock.ErrReleasePending)
			}
			cancel()
		}
		if term.Valid() {
			t.Error("the term goes on after its resignation")
		}
		c.link.Heal()
		for range 2 {
			resign(t, term)
		}
		resign(t, receive(t, "the second term", second))
	}},
	{"the node of a candidate that failed stays", steady, func(t *testing.T, c *contest) {
		term := c.campaign(t, c.b)
		giveUp := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // to send the create on a busy machine, too
			defer cancel()
			if term, err := c.a.Campaign(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("campaign: %v, %v, want %v", term, err, context.DeadlineExceeded)
			}
		}
		giveUp()
		awaitCandidates(t, c.op, "billing", 1)
		c.link.Stall(proxy.Down) // the create is carried out, and its reply does not arrive
		giveUp()
		awaitCandidates(t, c.op, "billing", 2)
		c.link.Heal()
		awaitCandidates(t, c.op, "billing", 1)
		c.leads(t, "b")
		resign(t, term)
	}},
	{"a candidate waits with a session that is over", brief, func(t *testing.T, c *contest) {
		term := c.campaign(t, c.b)
		second := campaigning(t, c.a)
		old := awaitCandidates(t, c.op, "billing", 2)[1]
		c.link.Blackhole(proxy.Both)
		awaitCandidates(t, c.op, "billing", 1) // its session has expired
		c.link.Heal()
		now := awaitCandidates(t, c.op, "billing", 2)[1]
		if now.Session == old.Session || now.Label != "a" {
			t.Errorf("the candidate is %+v after %+v, want one with another session", now, old)
		}
		resign(t, term)
		next := receive(t, "the second term", second)
		c.leads(t, "a")
		resign(t, next)
	}},
	{"a leader that returns at once is elected in a hot loop", steady, func(t *testing.T, c *contest) {
		const enough = 4
		terms, began := make(chan struct{}, 1000), time.Now()
		stop, wait := running(t, c.a, func(context.Context, *election.Term) error { terms <- struct{}{}; return nil })
		for range enough {
			receive(t, "a term", terms)
		}
		// The pauses between them are of 1, 2 and 4 seconds, each between its half and its whole.
		// They may take longer, and never less.
		if d := time.Since(began); d < 3500*time.Millisecond {
			t.Errorf("%d terms in %v", enough, d)
		}
		stop()
		wait()
		c.leads(t, "")
	}},
	{"the end of a term is reported for a candidate that never led", steady, func(t *testing.T, c *contest) {
		term := c.campaign(t, c.a)
		stop, wait := running(t, c.b, func(context.Context, *election.Term) error { t.Error("it was called"); return nil })
		awaitCandidates(t, c.op, "billing", 2)
		stop()
		if err := wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		awaitCandidates(t, c.op, "billing", 1)
		if len(c.stuck) > 0 {
			t.Error("a candidate that never led is reported as stuck")
		}
		resign(t, term)
	}},
	{"no operator learns of a leader that hangs", steady, func(t *testing.T, c *contest) {
		began, hang := make(chan struct{}), make(chan struct{})
		stop, wait := running(t, c.b, func(context.Context, *election.Term) error { close(began); <-hang; return nil })
		receive(t, "the term", began)
		stop()
		if valid := receive(t, "the report", c.stuck); !valid {
			t.Error("the term has ended although the function works")
		}
		c.leads(t, "b")
		close(hang)
		if err := wait(); !errors.Is(err, context.Canceled) || len(c.stuck) > 0 {
			t.Errorf("Run: %v, and %d more reports", err, len(c.stuck))
		}
	}},
}

func TestElectionBugs(t *testing.T) {
	t.Parallel()
	long.Test(t, "sessions have to expire")
	e := trioOfServers(t)
	for _, b := range electionBugs {
		t.Run(b.bug, func(t *testing.T) {
			t.Parallel() // they mostly wait for sessions to expire
			b.run(t, newContest(t, e, b.a))
		})
	}
}

// The table in docs/elections.md has the bugs of the test, in its order.
func TestDocumentedElectionBugs(t *testing.T) {
	text, err := os.ReadFile("../docs/elections.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| bug | why it cannot happen here |\n|---|---|\n")
	var rows []string
	for line := range strings.Lines(table) {
		bug, ok := strings.CutPrefix(line, "| ")
		if !ok {
			break
		}
		bug, _, _ = strings.Cut(bug, " |")
		rows = append(rows, bug)
	}
	for i, b := range electionBugs {
		if i >= len(rows) || rows[i] != b.bug && !strings.HasPrefix(rows[i], b.bug+" (") {
			t.Errorf("row %d of the table is not %q: %q", i+1, b.bug, rows[min(i, len(rows)-1)])
		}
	}
	if len(rows) != len(electionBugs) {
		t.Errorf("%d rows, and %d bugs with a test", len(rows), len(electionBugs))
	}
}
