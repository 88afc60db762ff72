package session

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/zklock/driver"
)

// A group that is too large, because no estimate is perfect, is no member's fault: each gets the answer about
// its own operations, and only one that is too large by itself gets the error.
func TestGroupThatIsTooLargeIsHalved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		c, flights := groups(t.Context(), &wg, "")
		land := busy(t, c, flights)
		const most = 1000
		large := creation("/large", strings.Repeat("x", most))
		writes := []*Write{large}
		for _, name := range strings.Split("abcdefghijklmnop", "") {
			writes = append(writes, creation("/"+name, strings.Repeat("x", 150)))
		}
		for _, w := range writes {
			c.Submit(w)
		}
		land()
		sent := 0
		for synctest.Wait(); len(flights) > 0; synctest.Wait() {
			f := <-flights
			size := 0
			for _, path := range paths(f) {
				size += len(path)
			}
			if size > most {
				f.answer <- driver.ErrTooLarge
			} else {
				sent++
				f.answer <- nil
			}
		}
		wg.Wait()
		for _, w := range writes {
			<-w.Done
			if tooLarge := errors.Is(w.Err, driver.ErrTooLarge); tooLarge != (w == large) || w.Err != nil && !tooLarge {
				t.Errorf("%.10s: %v, want ErrTooLarge for the large one only", w.Ops[0].Path, w.Err)
			}
		}
		if sent > 8 {
			t.Errorf("%d transactions were applied, want no more than 8", sent)
		}
	})
}
