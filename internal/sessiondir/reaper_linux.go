package sessiondir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/oneline"
	"github.com/zklock/go-zklock/zklock/driver"
)

// reaper ends the sessions of processes that have died.
type reaper struct {
	dir    *directory
	me     process
	closer func(Ensemble) (driver.SessionCloser, error) // nil without an error: not for this reaper
	log    func() *slog.Logger
	reaped func()        // called after the end of each session; may be nil
	outage time.Duration // for how long it waits for servers that cannot be reached; 0: it leaves the file to the next one

	wg sync.WaitGroup

	mu    sync.Mutex
	turns map[string]chan struct{} // guarded by mu; for each ensemble, one element for each attempt under way
	busy  map[string]struct{}      // guarded by mu; the files of sessions that are being ended
	later map[string]time.Time     // guarded by mu; the files of servers that have refused this reaper's identity, and when to look again
	noted map[string]struct{}      // guarded by mu; the files that the log has a refusal of
}

// maxAtOnce bounds the connections that a reaper makes to an ensemble at the same time.
const maxAtOnce = 16

func newReaper(d *directory, me process, log func() *slog.Logger, closer func(Ensemble) (driver.SessionCloser, error), reaped func()) *reaper {
	return &reaper{
		dir: d, me: me, closer: closer, log: log, reaped: reaped, outage: outage,
		turns: make(map[string]chan struct{}),
		busy:  make(map[string]struct{}), later: make(map[string]time.Time), noted: make(map[string]struct{}),
	}
}

// look ends the session of a file, in the background, if its process has died. It returns false if
// another process, or another part of this one, has the file's flock.
func (r *reaper) look(ctx context.Context, name string) bool {
	r.mu.Lock()
	_, busy := r.busy[name]
	busy = busy || time.Now().Before(r.later[name])
	r.mu.Unlock()
	if busy {
		return true
	}
	f, err := r.dir.open(name, os.O_RDONLY)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.refuse(name, reason(err))
		}
		return true
	}
	locked, err := lock(f)
	if err != nil {
		r.refuse(name, fmt.Errorf("flock: %w", err))
	}
	if err != nil || !locked || r.dir.removed(f, name) {
		_ = f.Close()
		return err != nil || locked
	}
	r.mu.Lock()
	r.busy[name] = struct{}{}
	r.mu.Unlock()
	r.wg.Go(func() {
		defer func() {
			r.mu.Lock()
			delete(r.busy, name)
			r.mu.Unlock()
			_ = f.Close()
		}()
		r.end(ctx, f, name, time.Now())
	})
	return true
}

// refuse logs, once for each file, why its session is not ended.
func (r *reaper) refuse(name string, why error) {
	r.mu.Lock()
	_, noted := r.noted[name]
	r.noted[name] = struct{}{}
	r.mu.Unlock()
	if !noted {
		r.log().Warn("zklock: a file in the session directory was left alone", "directory", r.dir.path, "file", name, "reason", why)
	}
}

// forget drops what it knows of files that were removed. It sorts the names of those that are there.
func (r *reaper) forget(there []string) {
	slices.Sort(there)
	gone := func(name string) bool { _, found := slices.BinarySearch(there, name); return !found }
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.later, func(name string, _ time.Time) bool { return gone(name) })
	maps.DeleteFunc(r.noted, func(name string, _ struct{}) bool { return gone(name) })
}

// end ends the session of a file, which this process has locked since died. No code of the session's
// process has run since then, if all is as it seems.
func (r *reaper) end(ctx context.Context, f *os.File, name string, died time.Time) {
	rec, err := r.dir.read(f, name)
	if r.stale(rec, err) {
		_ = r.dir.root.Remove(name)
		return
	}
	if err != nil {
		r.refuse(name, err)
		return
	}
	closer, err := r.closer(rec.Ensemble)
	if err != nil {
		r.refuse(name, err)
	}
	if closer == nil {
		return
	}
	if !strings.HasSuffix(name, suffixOver) {
		if lives, err := rec.Process.exists(r.me); err != nil || lives {
			r.refuse(name, oneline.Join(err, fmt.Errorf("process %d exists, although the file is not locked", rec.Process.PID)))
			return
		}
	}
	if !sleep(ctx, rec.LossDelay) {
		return
	}
	r.finish(ctx, closer, rec, name, died)
}

// outage bounds the time for which a reaper that goes on waits for servers that cannot be reached.
const outage = time.Hour

// finish ends a session of which nothing runs any longer, and removes its file. It tries again until the
// session must have expired, if no attempt has prolonged it. An attempt that has, and then failed, has
// done so by one session timeout. Without a leader no session expires, so the time does not count while
// no server can be reached, up to r.outage.
func (r *reaper) finish(ctx context.Context, closer driver.SessionCloser, rec record, name string, died time.Time) {
	until := died.Add(rec.LossDelay + rec.Timeout)
	var err error
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		limited, cancel := context.WithDeadline(ctx, until)
		err = r.attempt(limited, closer, rec)
		if errors.Is(err, driver.ErrNotSent) && time.Since(died) < r.outage {
			until = time.Now().Add(rec.Timeout)
		}
		cancel()
		if err == nil || errors.Is(err, driver.ErrAuthFailed) || !sleep(ctx, min(pause/2+rand.N(pause), time.Until(until))) || !time.Now().Before(until) {
			break
		}
	}
	if ctx.Err() != nil && err != nil {
		return // the next one that watches goes on
	}
	then := "it expires by itself"
	if r.outage == 0 && errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrAuthFailed) && r.postpone(name, rec) {
		then = "its file stays for the next one that looks"
	} else {
		_ = r.dir.root.Remove(name)
	}
	session, whose := fmt.Sprintf("%#x", uint64(rec.Session)), "the session of a dead process"
	if strings.HasSuffix(name, suffixOver) {
		whose = "a session that its process had given up"
	}
	if err != nil {
		r.log().Warn("zklock: "+whose+" could not be ended; "+then,
			"session", session, "pid", rec.Process.PID, "timeout", rec.Timeout, "error", err)
		return
	}
	if r.reaped != nil {
		r.reaped()
	}
	r.log().Info("zklock: ended "+whose+", and its locks with it",
		"session", session, "pid", rec.Process.PID, "after", time.Since(died).Round(time.Millisecond/10))
}

// postpone leaves a file to processes with another identity until its session, which the attempt has prolonged,
// must have expired. It returns false if it has done so before.
func (r *reaper) postpone(name string, rec record) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.later[name]; again {
		return false
	}
	r.later[name] = time.Now().Add(2 * rec.Timeout)
	return true
}

// attempt tries once to end a session, when it is its turn.
func (r *reaper) attempt(ctx context.Context, closer driver.SessionCloser, rec record) error {
	r.mu.Lock()
	turns, ok := r.turns[rec.Ensemble.key()]
	if !ok {
		turns = make(chan struct{}, maxAtOnce)
		r.turns[rec.Ensemble.key()] = turns
	}
	r.mu.Unlock()
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
		return closer.CloseSession(ctx, rec.credentials())
	case <-ctx.Done():
		return oneline.Join(driver.ErrNotSent, ctx.Err())
	}
}

// clear removes the files of other ensembles that are of another boot of the machine. It locks no other
// file: the client that watches for that ensemble may be about to.
func (r *reaper) clear(key string) {
	names, _ := r.dir.names("") // scan says what is wrong
	for _, name := range names {
		if strings.HasPrefix(name, key+"-") {
			continue
		}
		f, err := r.dir.open(name, os.O_RDONLY)
		if err != nil {
			continue
		}
		if r.stale(r.dir.read(f, name)) {
			_ = r.dir.root.Remove(name)
		}
		_ = f.Close()
	}
}

// stale reports whether the machine has started again since a file was written, from what read has returned:
// the session has expired, or will. The device may have got another number, as if the file were a copy.
func (r *reaper) stale(rec record, err error) bool {
	return (err == nil || errors.Is(err, errCopied)) && rec.Process.Boot != r.me.Boot
}

// sleep waits, and returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
