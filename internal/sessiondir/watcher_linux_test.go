package sessiondir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock/driver"
)

// candidate starts what another process of the machine would: it wants to watch the directory.
func (b *bench) candidate(key string) (stop func()) {
	r := newReaper(b.dir, b.me, b.reaper.log, b.closer, nil)
	ctx, cancel := context.WithCancel(b.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { r.stand(ctx, key) })
	stop = func() { cancel(); wg.Wait() }
	b.t.Cleanup(stop)
	return stop
}

// TestTwoWatchAndTheNextTakeOver: of many clients two watch; when one stops, another one does.
func TestTwoWatchAndTheNextTakeOver(t *testing.T) {
	b := newBench(t)
	key := ensembleOf(ours).key()
	var stops []func()
	for range 10 {
		stops = append(stops, b.candidate(key))
	}
	// A candidate that is late would look at all files while another one is about to watch. Each one has
	// both FIFOs open for reading, and those that watch have one also for writing.
	wait.Until(t, "two watch, and the others wait", func() bool {
		return notifiers(t) == 2 && descriptors(t, "/"+key+suffixWatch) > len(stops) && descriptors(t, "/"+key+suffixSecond) > len(stops)
	})
	for i, stop := range stops {
		id := int64(100 + i)
		b.died(id, nil)
		wait.Until(t, fmt.Sprintf("session %d is ended", id), func() bool { return slices.Contains(b.close.all(), id) })
		wait.Until(t, "two watch, and no other one", func() bool { return notifiers(t) == min(2, len(stops)-i) })
		stop()
	}
	b.died(7, nil)
	time.Sleep(50 * time.Millisecond)
	if slices.Contains(b.close.all(), 7) {
		t.Error("a session was ended, although no client watches")
	}
}

// stoppedWatcher returns the open FIFO of a process that watches by it, and shows no sign of life, until the end of the test.
func stoppedWatcher(t *testing.T, b *bench, fifo string) *os.File {
	t.Helper()
	f, err := b.dir.openFIFO(fifo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	locked, err := lock(f)
	w, openErr := b.dir.open(fifo, os.O_WRONLY)
	if err = errors.Join(err, openErr); err != nil || !locked {
		t.Fatal(locked, err)
	}
	t.Cleanup(func() { w.Close() })
	return f
}

// TestStoppedWatcherHoldsUpNothing: while one of the two that watch is stopped, the other one ends the sessions of the dead. It
// does so before the first one could have been missed.
func TestStoppedWatcherHoldsUpNothing(t *testing.T) {
	b := newBench(t)
	key := ensembleOf(ours).key()
	f := stoppedWatcher(t, b, key+suffixWatch)
	b.candidate(key)
	wait.Until(t, "the other one watches", func() bool { return notifiers(t) == 1 })
	b.died(7, nil)
	wait.Until(t, "the session is ended", func() bool { return slices.Equal(b.close.all(), []int64{7}) })
	if b.dir.removed(f, key+suffixWatch) {
		t.Error("the one that is stopped was replaced first")
	}
}

// TestStoppedWatchersAreReplaced: of the clients that wait, two take the places of those that watch, when these
// show no sign of life. When one of them goes on, it notices, and waits like the others.
func TestStoppedWatchersAreReplaced(t *testing.T) {
	b := newBench(t)
	key := ensembleOf(ours).key()
	stopped := stoppedWatcher(t, b, key+suffixWatch)
	stoppedWatcher(t, b, key+suffixSecond)
	for range 3 {
		b.candidate(key)
	}
	wait.Until(t, "two watch", func() bool { return notifiers(t) == 2 })
	b.died(7, nil)
	wait.Until(t, "the session is ended", func() bool { return slices.Equal(b.close.all(), []int64{7}) })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	newReaper(b.dir, b.me, b.reaper.log, b.closer, nil).watch(ctx, key, key+suffixWatch, stopped) // returns, since another one watches
	if n := notifiers(t); n != 2 {
		t.Errorf("%d watch, want two", n)
	}
}

// TestShortWatchHasNoNotifier: a process that ends soon does not wait for the end of a notifier, and yet ends the session of
// a dead one.
func TestShortWatchHasNoNotifier(t *testing.T) {
	b := newBench(t)
	key := ensembleOf(ours).key()
	f, err := b.dir.openFIFO(key + suffixWatch)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dead()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { newReaper(b.dir, b.me, b.reaper.log, b.closer, nil).watch(ctx, key, key+suffixWatch, f) })
		sleep(ctx, settled/3)
		b.died(7, nil)
		sleep(ctx, settled/3)
		if got := b.close.all(); !slices.Equal(got, []int64{7}) {
			t.Errorf("the sessions %v are ended, want 7", got)
		}
		if n := notifiers(t); n != 0 {
			t.Errorf("%d notifiers, %v after the watch began, want none", n, 2*settled/3)
		}
		cancel()
		wg.Wait()
	})
}

// notifiers returns how many notifiers this process has.
func notifiers(t *testing.T) int {
	t.Helper()
	return descriptors(t, "anon_inode:inotify")
}

// descriptors returns how many descriptors of this process are for files whose paths end like that.
func descriptors(t *testing.T, suffix string) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range all {
		if to, _ := os.Readlink(fd); strings.HasSuffix(to, suffix) {
			n++
		}
	}
	return n
}

// TestFlocksDoNotWaitForTheNotifier: when a process dies, the kernel gives back the descriptors with the
// lowest numbers last, and a notifier takes it long.
func TestFlocksDoNotWaitForTheNotifier(t *testing.T) {
	b := newBench(t)
	k := b.lives(1, func(*record) {})
	defer k.release()
	n := newNotifier(b.dir)
	defer n.close()
	if n.f.Fd() >= k.f.Fd() {
		t.Errorf("the notifier's descriptor is %d, that of the session's file %d, want a lower one", n.f.Fd(), k.f.Fd())
	}
	second := newNotifier(b.dir)
	defer second.close()
	b.died(2, nil)
	for _, n := range []*notifier{n, second} {
		if names, all := n.wait(t.Context(), time.Now().Add(rest)); len(names) == 0 && !all {
			t.Errorf("a notifier with the descriptor %d has missed a file that was closed", n.f.Fd())
		}
	}
}

// TestEachEnsembleIsWatched: in one directory, the clients of each ensemble watch for themselves.
func TestEachEnsembleIsWatched(t *testing.T) {
	b := newBench(t)
	theirs := ours
	theirs.Hosts = []string{"c:3"}
	other := &closes{}
	r := newReaper(b.dir, b.me, b.reaper.log, func(e Ensemble) (driver.SessionCloser, error) {
		if e.key() != ensembleOf(theirs).key() {
			return nil, errors.New("the servers of others")
		}
		return other, nil
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	b.candidate(ensembleOf(ours).key())
	wg.Go(func() { r.stand(ctx, ensembleOf(theirs).key()) })
	b.died(7, nil)
	b.died(8, func(r *record) { r.Ensemble = ensembleOf(theirs) })
	wait.Until(t, "each has ended its session", func() bool {
		return slices.Equal(b.close.all(), []int64{7}) && slices.Equal(other.all(), []int64{8})
	})
}

// TestWatchingWithoutNotices: a machine may give no more notifiers. Files are then looked at again and
// again.
func TestWatchingWithoutNotices(t *testing.T) {
	b := newBench(t)
	n := &notifier{}
	if names, all := n.wait(t.Context(), time.Now().Add(rest)); len(names) > 0 || !all {
		t.Errorf("a notifier of nothing returned %v, %t", names, all)
	}
	n = newNotifier(b.dir)
	defer n.close()
	defer b.lives(8, func(*record) {}).release() // no process has closed it, so there is no notice of it
	name := b.died(7, nil)
	if names, _ := n.wait(t.Context(), time.Now().Add(rest)); !slices.Equal(names, []string{name}) {
		t.Errorf("the notices are %v, want one of %s", names, name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, all := n.wait(ctx, time.Now().Add(rest)); !all {
		t.Error("a wait that ctx has ended says that nothing may be free")
	}
	b.died(9, nil)
	if _, all := n.wait(t.Context(), time.Now()); !all {
		t.Error("a notice has put off the look at all files")
	}
}

// TestReapFollowsThePath: a reaper that goes on watches the directory that has the path, also after systemd has
// removed that of a unit and made it again. What has begun in the first one goes on.
func TestReapFollowsThePath(t *testing.T) {
	b := newBench(t)
	answers, ended := make(chan struct{}), &closes{}
	slow := closerFunc(func(ctx context.Context, cred driver.Credentials) error {
		if cred.ID == 7 {
			select {
			case <-answers:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return ended.CloseSession(ctx, cred)
	})
	var logged atomic.Int64
	log := func() *slog.Logger {
		logged.Add(1)
		return slog.New(slog.DiscardHandler)
	}
	b.died(7, func(r *record) { r.Timeout = time.Hour })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var n int
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		n, err = Reap(ctx, b.path, true, func(Ensemble) (driver.Connector, error) { return closing{SessionCloser: slow}, nil }, log)
	}()
	has := func(id int64) func() bool { return func() bool { return slices.Contains(ended.all(), id) } }
	b.died(8, nil)
	wait.Until(t, "it watches", has(8))

	other := b.path + "~"
	if err := errors.Join(os.Mkdir(other, 0o700), os.Chmod(other, 0o755), os.RemoveAll(b.path), os.Rename(other, b.path)); err != nil {
		t.Fatal(err)
	}
	before := logged.Load()
	wait.Until(t, "the log says that the new directory is not usable", func() bool { return logged.Load() > before })
	if err := os.Chmod(b.path, 0o700); err != nil {
		t.Fatal(err)
	}
	d, openErr := openDirectory(b.path, syscall.Fstatfs)
	if openErr != nil {
		t.Fatal(openErr)
	}
	defer d.close()
	b.dir = d
	b.died(9, nil)
	wait.Until(t, "it watches the new directory", has(9))
	if has(7)() {
		t.Error("a session was ended before its time")
	}
	close(answers)
	wait.Until(t, "the session of the first directory is ended", has(7))
	cancel()
	<-done
	if n != 3 || err != nil {
		t.Errorf("it has ended %d sessions, %v; want 3", n, err)
	}
	if n := notifiers(t); n != 0 {
		t.Errorf("%d notifiers are left", n)
	}
}

// TestManyAreEndedAtOnce: a thousand sessions of dead processes take one attempt each.
func TestManyAreEndedAtOnce(t *testing.T) {
	b := newBench(t)
	b.candidate(ensembleOf(ours).key())
	const many = 1000
	var want []int64
	for id := range int64(many) {
		b.died(id+1, nil)
		want = append(want, id+1)
	}
	wait.Until(t, "all sessions are ended", func() bool { return slices.Equal(b.close.all(), want) })
	wait.Until(t, "all files are gone", func() bool { return len(b.left()) == 0 })
}
