package sessiondir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// watch ends the sessions of processes that die, until ctx ends or another process has replaced the FIFO f of that name,
// and waits for the attempts that are under way. key is that of an ensemble.
func (r *reaper) watch(ctx context.Context, key, fifo string, f *os.File) {
	defer r.wg.Wait()
	ctx, replaced := context.WithCancel(ctx)
	defer replaced()
	r.wg.Go(func() {
		defer replaced()
		r.beat(ctx, f, fifo)
	})
	for began := time.Now(); time.Since(began) < settled; {
		r.scan(ctx, key)
		if !sleep(ctx, settled/10) {
			return
		}
	}
	n := newNotifier(r.dir)
	defer n.close()
	for ctx.Err() == nil {
		r.round(ctx, key, n)
	}
}

// settled is how long a process watches without a notifier at first, and looks at all files again and again. The kernel
// needs some 15 ms to end a notifier, in which the end of its process waits: a third of the time of a short command.
const settled = 100 * time.Millisecond

// round looks at all files, and then, for a rest, at those that processes close.
func (r *reaper) round(ctx context.Context, key string, n *notifier) {
	r.scan(ctx, key)
	until := time.Now().Add(rest) // also while notices arrive all the time
	for all := false; !all && ctx.Err() == nil; {
		var names []string
		names, all = n.wait(ctx, until)
		for _, name := range names {
			if key == "" || strings.HasPrefix(name, key+"-") {
				r.expect(ctx, name)
			}
		}
	}
}

// scan looks at all files of an ensemble.
func (r *reaper) scan(ctx context.Context, key string) {
	names, err := r.dir.names(key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // connector.keep and watchUntilReplaced notice that the directory was removed
		r.refuse(".", err)
	}
	if err == nil {
		r.forget(names)
	}
	for _, name := range names {
		r.look(ctx, name)
	}
}

// expect looks at a file that a process has closed. The kernel gives notice just before it releases the
// flock.
func (r *reaper) expect(ctx context.Context, name string) {
	for pause := 100 * time.Microsecond; !r.look(ctx, name) && pause < 30*time.Millisecond; pause *= 2 {
		if !sleep(ctx, pause) {
			return
		}
	}
}

// stand waits until this process is one of the two that watch a directory for an ensemble, and then
// watches, until ctx ends. One that is stopped does no harm: the other one sees each death as soon. A process watches that has
// the flock of one of two FIFOs. It also has that FIFO's end for writing open. The others read, and learn by the end of file that
// it has died or closed it. So they cost two descriptors each, and look at each FIFO once a second: one that watches
// and is stopped shows no sign of life there, and a third one takes its place. Each looks at all files
// once when it begins.
func (r *reaper) stand(ctx context.Context, key string) {
	defer r.wg.Wait()
	r.clear(key)
	r.scan(ctx, key)
	var both sync.WaitGroup
	defer both.Wait()
	watches := make(chan struct{}, 1) // one element while this process watches, or tries to
	for _, suffix := range []string{suffixWatch, suffixSecond} {
		both.Go(func() { r.apply(ctx, key, key+suffix, watches) })
	}
}

// apply is stand for one FIFO.
func (r *reaper) apply(ctx context.Context, key, fifo string, watches chan struct{}) {
	for pause := time.Millisecond; ctx.Err() == nil; pause = min(2*pause, time.Second) {
		switch f, err := r.dir.openFIFO(fifo); {
		case err == nil:
			r.candidate(ctx, key, fifo, f, watches)
			_ = f.Close()
		case !errors.Is(err, fs.ErrNotExist): // not removed
			r.refuse(fifo, err)
		}
		sleep(ctx, pause)
	}
}

// candidate watches when it gets the flock of f, and this process does not watch by the other FIFO. It returns when ctx has
// ended, or if f is of no use any longer.
func (r *reaper) candidate(ctx context.Context, key, fifo string, f *os.File, watches chan struct{}) {
	defer context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })()
	var s signs
	for pause := time.Millisecond; ctx.Err() == nil; pause = min(2*pause, look) {
		select {
		case watches <- struct{}{}:
		case <-ctx.Done():
			return
		}
		locked, err := lock(f)
		if !locked {
			<-watches
		} else {
			defer func() { <-watches }()
		}
		if err != nil || r.dir.removed(f, fifo) {
			return
		}
		if locked {
			w, err := r.dir.open(fifo, os.O_WRONLY)
			if err != nil {
				return
			}
			defer w.Close()
			r.watch(ctx, key, fifo, f)
			return
		}
		if s.gone(f) {
			// With another FIFO all begin again, and the one that was stopped notices that.
			_ = r.dir.root.Remove(fifo)
			return
		}
		began := time.Now()
		if err := f.SetReadDeadline(began.Add(look)); err != nil || ctx.Err() != nil {
			return
		}
		_, err = f.Read(make([]byte, 1))
		if errors.Is(err, os.ErrDeadlineExceeded) || err != nil && time.Since(began) > pause {
			pause = time.Millisecond // it has waited for one that watched: the next one should not wait long
			continue
		}
		// The one that watches has not opened its end yet.
		sleep(ctx, pause)
	}
}

// openFIFO opens a FIFO for reading, and makes it if it is missing.
func (d *directory) openFIFO(name string) (*os.File, error) {
	dir, err := d.root.Open(".")
	if err != nil {
		return nil, reason(err)
	}
	defer dir.Close()
	if err := syscall.Mknodat(int(dir.Fd()), name, syscall.S_IFIFO|0o600, 0); err != nil && err != syscall.EEXIST {
		return nil, err
	}
	f, err := d.open(name, os.O_RDONLY)
	return f, reason(err)
}
