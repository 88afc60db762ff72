package election_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A leader that leads for long, and a candidate that waits for its end, do what they are for: Stats take
// them for neither a long hold nor a long wait.
func TestIdleElectionLooksIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		leads, stands := connect(t, e), connect(t, e)
		idle := func(ctx context.Context, _ *election.Term) error { <-ctx.Done(); return nil }
		leader := run(t, election.New(leads, "billing"), idle)
		synctest.Wait()
		candidate := run(t, election.New(stands, "billing"), idle)
		time.Sleep(84 * time.Minute)
		for _, c := range []*zklock.Client{leads, stands} {
			if s := c.Stats(); s.LongestHold != 0 || s.LongestWait != 0 {
				t.Errorf("longest hold %v, longest wait %v", s.LongestHold, s.LongestWait)
			}
		}
		leader.stop()
		<-leader.done
		synctest.Wait()
		if s := stands.Stats(); s.Held != 1 || s.Contended != 0 || s.WaitDuration != 0 {
			t.Errorf("the candidate leads, and Stats are %+v", s)
		}
		candidate.stop()
		<-candidate.done
	})
}
