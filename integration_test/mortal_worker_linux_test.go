package integration_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// mortalTask is the work of a process that may be killed at any moment.
type mortalTask struct {
	Board  string // the file that all these processes have in their memory
	Worker int
	Close  bool // it closes its client now and then, and opens another one
}

const (
	mortals     = 6 // processes at the same time
	mortalNames = 3
)

// board is memory that processes share. A process that holds a lock writes the time there, again and
// again, as long as the lock is valid. So the others see what was the last moment at which it did
// something under the lock, also if it is killed.
type board struct {
	beats  [mortalNames][mortals]atomic.Int64 // when a process last held the name
	tokens [mortalNames]atomic.Int64          // of the newest holder
	holds  atomic.Int64
}

func mapBoard(path string) (*board, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(unsafe.Sizeof(board{}))); err != nil {
		return nil, err
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(unsafe.Sizeof(board{})), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*board)(unsafe.Pointer(unsafe.SliceData(data))), nil
}

// mortal acquires and releases locks until its parent writes a line. It reports each of its sessions, and
// what it sees of others that must not be.
func (w *worker) mortal() error {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	b, err := mapBoard(w.task.Mortal.Board)
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		close(stop)
	}()
	w.print(report{What: "ready"})
	for {
		c, err := zklock.Open(w.task.URL, zklock.WithHooks(zklock.Hooks{Session: w.reportSession}))
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				for ctx.Err() == nil {
					if err := w.mortalCycle(ctx, c, b); err != nil && ctx.Err() == nil && !errors.Is(err, zklock.ErrLost) && !errors.Is(err, zklock.ErrUnavailable) && !errors.Is(err, zklock.ErrReleasePending) {
						w.print(report{What: "error", Err: err.Error()})
						return
					}
				}
			})
		}
		over := false
		var life <-chan time.Time
		if w.task.Mortal.Close {
			life = time.After(rand.N(300 * time.Millisecond))
		}
		select {
		case <-stop:
			over = true
		case <-life:
		}
		cancel()
		all.Wait()
		if err := c.Close(); err != nil || over {
			return err
		}
	}
}

func (w *worker) reportSession(e zklock.SessionEvent) {
	switch {
	case e.State == driver.Connected && e.Err == nil:
		w.print(report{What: "session", From: e.ID})
	case e.State == driver.Expired:
		w.print(report{What: "expired", From: e.ID, Err: fmt.Sprint(e.Err)})
	}
}

// mortalCycle holds a lock for a moment, and looks what other processes do under it in that time.
func (w *worker) mortalCycle(ctx context.Context, c *zklock.Client, b *board) error {
	n := rand.IntN(mortalNames)
	l, err := c.Mutex(fmt.Sprint("name-", n)).Acquire(ctx)
	if err != nil {
		return err
	}
	began := monotonic()
	if !l.Valid() {
		return l.Release(context.WithoutCancel(ctx))
	}
	mine := l.Token().Zxid<<16 | int64(l.Token().Turn)
	if last := b.tokens[n].Swap(mine); last >= mine {
		w.print(report{What: "violation", Err: fmt.Sprintf("name-%d: token %v after %#x", n, l.Token(), last)})
	}
	until := began + int64(rand.N(4*time.Millisecond))
	for {
		now := monotonic()
		if now > until || !l.Valid() { // valid now, so it was at that time
			break
		}
		b.beats[n][w.task.Mortal.Worker].Store(now)
		for other := range mortals {
			// A beat after now proves nothing: this process may have been stopped since, and have lost the lock.
			if beat := b.beats[n][other].Load(); other != w.task.Mortal.Worker && beat >= began && beat <= now {
				w.print(report{What: "violation", Err: fmt.Sprintf("name-%d: process %d worked under it at %d, and process %d has held it since %d", n, other, beat, w.task.Mortal.Worker, began)})
			}
		}
	}
	b.holds.Add(1)
	return l.Release(context.WithoutCancel(ctx))
}
