package fault

import (
	"io"
	"slices"
	"sync"
	"time"
)

// far is a connection whose other end is far away: what is written arrives later, in order, and what is written meanwhile is under way, too.
type far struct {
	to   io.Writer
	by   time.Duration
	line chan parcel
	done sync.WaitGroup

	mu  sync.Mutex
	err error // guarded by mu; of the first write that failed
}

// parcel is what arrives at a moment.
type parcel struct {
	at    time.Time
	bytes []byte
}

// underWay is how many writes can be under way. Another one waits.
const underWay = 4096

func newFar(to io.Writer, by time.Duration) *far {
	f := &far{to: to, by: by, line: make(chan parcel, underWay)}
	f.done.Go(f.deliver)
	return f
}

func (f *far) deliver() {
	for p := range f.line {
		time.Sleep(time.Until(p.at))
		if f.failed() != nil {
			continue
		}
		if _, err := f.to.Write(p.bytes); err != nil {
			f.mu.Lock()
			f.err = err
			f.mu.Unlock()
		}
	}
}

func (f *far) failed() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Write sends bytes on their way. Its error is that of an earlier write.
func (f *far) Write(b []byte) (int, error) {
	if err := f.failed(); err != nil {
		return 0, err
	}
	f.line <- parcel{time.Now().Add(f.by), slices.Clone(b)}
	return len(b), nil
}

// close returns when all that was written has arrived.
func (f *far) close() {
	close(f.line)
	f.done.Wait()
}
