package election

import (
	"context"
	"math/rand/v2"
	"time"
)

// The pauses between two candidacies of a Run. A leader's function that returns at once must
// not make the ensemble elect in a hot loop; one that has worked for a while stands again soon.
const (
	firstPause = time.Second
	mostPause  = 30 * time.Second
	longTerm   = 30 * time.Second // a term that lasts as long is not short
)

// backoff chooses the pauses of one Run.
type backoff struct {
	pause time.Duration // the last one, without jitter
}

// next returns the pause without jitter. short means that the term before it was short, or
// that the candidacy failed, for a reason that standing again does not change: then the
// pause doubles.
func (b *backoff) next(short bool) time.Duration {
	if b.pause == 0 || !short {
		b.pause = firstPause
	} else {
		b.pause = min(2*b.pause, mostPause)
	}
	return b.pause
}

// rest waits between half of d and d, so that candidates that failed together do not stand
// together. It returns early if ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d/2 + rand.N(d/2+1))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
