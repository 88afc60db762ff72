package sessiondir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Reap ends the sessions of all processes that have died, whatever their ensembles are, and returns
// how many it has ended. With wait it goes on, also with processes that die later, until ctx ends. Without,
// it waits for servers that cannot be reached no longer than the sessions live.
func Reap(ctx context.Context, path string, wait bool, open Opener, log func() *slog.Logger) (ended int, err error) {
	d, err := openDirectory(path, syscall.Fstatfs)
	if err != nil {
		return 0, err
	}
	me, err := self()
	if err != nil {
		d.close()
		return 0, fmt.Errorf("session directory %s: this process cannot be identified: %w", path, err)
	}
	all := closers{open: open, all: make(map[string]driver.Connector)}
	defer all.close()
	var count atomic.Int64
	reaped := func() { count.Add(1) }
	if !wait {
		defer d.close()
		r := newReaper(d, me, log, all.closer, reaped)
		r.outage = 0 // a unit that stops may wait for this
		r.scan(ctx, "")
		r.wg.Wait()
		return int(count.Load()), context.Cause(ctx)
	}
	var begun sync.WaitGroup
	for d != nil {
		r := newReaper(d, me, log, all.closer, reaped)
		d = r.watchUntilReplaced(ctx)
		begun.Go(func() {
			r.wg.Wait()
			r.dir.close()
		})
	}
	begun.Wait()
	return int(count.Load()), nil
}

// watchUntilReplaced watches all ensembles until another directory has the path, as when systemd has removed
// that of a unit and made it again. It returns that directory, or nil when ctx ends. Attempts are under way.
func (r *reaper) watchUntilReplaced(ctx context.Context) *directory {
	n := newNotifier(r.dir)
	defer n.close()
	for ctx.Err() == nil {
		r.round(ctx, "", n)
		if _, err := os.Lstat(r.dir.path); err != nil || !r.dir.replaced() {
			continue // without a path no new session has a file
		}
		d, err := openDirectory(r.dir.path, syscall.Fstatfs)
		if err == nil {
			return d
		}
		r.refuse(".", err)
	}
	return nil
}

// closers are the connectors of a reaper, one for each ensemble and identity.
type closers struct {
	open Opener

	mu  sync.Mutex
	all map[string]driver.Connector // guarded by mu; by the whole Ensemble
}

func (c *closers) closer(e Ensemble) (driver.SessionCloser, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := fmt.Sprintf("%q", e)
	conn, known := c.all[key]
	if !known {
		var err error
		if conn, err = c.open(e); err != nil {
			return nil, err
		}
		c.all[key] = conn
	}
	closer, ok := driver.CloserOf(conn)
	if !ok {
		return nil, errors.New("the driver cannot end the sessions of other processes")
	}
	return closer, nil
}

func (c *closers) close() {
	for _, conn := range c.all {
		_ = conn.Close()
	}
}

// EndHeld ends the sessions of files that [Held] has returned in another process, which has died. This
// process holds their flocks. It ends no session of a process that still exists. It closes the files. It waits
// for servers that cannot be reached no longer than the sessions live, and leaves them to the next process that looks.
func EndHeld(ctx context.Context, files []*os.File, open Opener, log func() *slog.Logger) {
	all := closers{open: open, all: make(map[string]driver.Connector)}
	defer all.close()
	var wg sync.WaitGroup
	died := time.Now()
	for _, f := range files {
		wg.Go(func() {
			defer f.Close()
			endHeld(ctx, f, all.closer, log, died)
		})
	}
	wg.Wait()
}

func endHeld(ctx context.Context, f *os.File, closer func(Ensemble) (driver.SessionCloser, error), log func() *slog.Logger, died time.Time) {
	data := make([]byte, maxRecord)
	n, _ := f.ReadAt(data, 0)
	rec, err := decode(data[:n])
	if err != nil {
		return
	}
	c, err := closer(rec.Ensemble)
	if err != nil {
		return
	}
	d, err := openDirectory(rec.Directory, syscall.Fstatfs)
	if err != nil {
		return
	}
	defer d.close()
	// The process may have ended the session itself, and the file with it.
	if rec, err = d.read(f, rec.name()); err != nil || d.removed(f, rec.name()) {
		return
	}
	me, err := self()
	if err != nil {
		return
	}
	if lives, err := rec.Process.exists(me); err != nil || lives {
		return
	}
	r := newReaper(d, me, log, nil, nil)
	// If this process waited for servers that are away, it would gain one session timeout at most: when they
	// are back, the session expires by then. And a machine would collect such processes, one for each
	// command that was killed.
	r.outage = 0
	if sleep(ctx, rec.LossDelay) {
		r.finish(ctx, c, rec, rec.name(), died)
	}
}
