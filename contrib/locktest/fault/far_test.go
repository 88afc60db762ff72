package fault

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// arrivals notes when bytes arrive. After some it fails.
type arrivals struct {
	at   []time.Duration
	from time.Time
	most int
}

var errFull = errors.New("full")

func (a *arrivals) Write(b []byte) (int, error) {
	if len(a.at) == a.most {
		return 0, errFull
	}
	a.at = append(a.at, time.Since(a.from))
	return len(b), nil
}

// TestBytesToAFarEndDoNotWaitForEachOther: each write arrives as much later as the distance is, also while others are under way, and close waits
// for the last one. A write after one that failed fails.
func TestBytesToAFarEndDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const distance, gap, writes = 50 * time.Millisecond, time.Millisecond, 100
		to := &arrivals{from: time.Now(), most: writes}
		f := newFar(to, distance)
		for range writes {
			if _, err := f.Write([]byte{1}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(gap)
		}
		f.close()
		if len(to.at) != writes {
			t.Fatalf("%d writes have arrived, want %d", len(to.at), writes)
		}
		for i, at := range to.at {
			if want := time.Duration(i)*gap + distance; at != want {
				t.Errorf("write %d arrived after %v, want %v", i, at, want)
			}
		}
		f = newFar(to, distance)
		if _, err := f.Write([]byte{1}); err != nil {
			t.Errorf("a write that fails later: %v", err)
		}
		time.Sleep(2 * distance)
		if _, err := f.Write([]byte{1}); !errors.Is(err, errFull) {
			t.Errorf("a write after one that failed: %v, want its error", err)
		}
		f.close()
	})
}
