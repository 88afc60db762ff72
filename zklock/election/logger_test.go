package election_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/backlog"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A leader whose function fails, or returns late, resigns while the log is stuck: the next candidate leads.
func TestResigningWithAStuckLog(t *testing.T) {
	const late = 20 * time.Second
	for name, lead := range map[string]func(context.Context) error{
		"fails": func(context.Context) error { return errors.New("no database") },
		"returns late": func(ctx context.Context) error {
			<-ctx.Done()
			<-time.After(late)
			return ctx.Err()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, log := memdriver.New(), corekit.NewStuckLog(t)
			stuck := make(chan *election.Term, 1)
			first := election.New(connect(t, e, zklock.WithLogger(log.Logger())), "x", election.WithLogger(log.Logger()),
				election.WithStuck(late/2, func(t *election.Term) { stuck <- t }))
			begins := make(chan struct{})
			r := run(t, first, func(ctx context.Context, _ *election.Term) error {
				<-begins
				return lead(ctx)
			})
			next := standing(t, election.New(connect(t, e), "x"))
			close(begins)
			r.stop()
			log.Returns(t, "a leader that "+name, late+2*time.Second, func() { resign(t, <-next) })
			began := time.Now()
			log.Returns(t, "Run", late, func() { <-r.done })
			if took := time.Since(began); took > backlog.Patience {
				t.Errorf("Run has returned %v after its term, want at most %v", took, backlog.Patience)
			}
			if name != "fails" && len(stuck) != 1 {
				t.Error("the function of WithStuck was not called")
			}
		})
	}
}

// A Run that returns has written its lines, if the handler takes them in time.
func TestRunWaitsForItsLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := corekit.NewStuckLog(t)
		defer time.AfterFunc(backlog.Patience/2, log.Read).Stop()
		ctx, cancel := context.WithCancel(t.Context())
		err := election.New(connect(t, memdriver.New()), "x", election.WithLogger(log.Logger())).Run(ctx, func(context.Context, *election.Term) error {
			cancel()
			return errors.New("no database")
		})
		if !errors.Is(err, context.Canceled) || !strings.Contains(log.String(), "no database") {
			t.Errorf("Run returned %v, and the log has %q", err, log)
		}
	})
}
