package once_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/once"
)

// Slots run while the log is stuck: those after one that failed, and those after one that was missed, whose line
// is logged under the lock.
func TestEveryWithAStuckLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = time.Hour
		e, log := memdriver.New(), corekit.NewStuckLog(t)
		c := connect(t, e.Connector())
		ctx, cancel := context.WithCancel(t.Context())
		var slots []time.Time
		ended := make(chan error, 1)
		go func() {
			ended <- once.Every(ctx, c, "x", period, func(_ context.Context, slot time.Time) error {
				slots = append(slots, slot)
				switch len(slots) {
				case 1:
					return errors.New("no database")
				case 3:
					<-time.After(3*period + period/2) // so that slots are missed
				}
				return nil
			}, once.WithLogger(log.Logger()), once.WithRetry(2, time.Second))
		}()
		<-time.After(9 * period)
		cancel()
		log.Returns(t, "Every", 2*time.Second, func() { <-ended })
		if n := len(slots); n < 6 {
			t.Errorf("the job was called %d times in nine hours, want six or more: %v", n, slots)
		}
	})
}
