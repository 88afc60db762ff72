// Package worker is the part of the benchmark that locks, with one library, as the runner
// commands. The runner starts as many processes of a library as a workload needs, and
// exchanges lines with them. Libraries in other languages, and those whose dependencies
// this module avoids, are separate programs with the same commands:
//
//	cycles KIND GOROUTINES NAMES PREFIX MILLISECONDS
//	once KIND GOROUTINES NAMES PREFIX
//	load KIND NAME WAIT WORK STEP PHASE...
//	use KIND NAME TIMES
//	hold NAME
//	release
//	versions
//
// The command use acquires and releases a name as often as it says, without preparations.
// The answer has the times of the last one.
//
// The command load has callers want one name for at most WAIT milliseconds each, and work for WORK
// milliseconds when they have it. A phase is 100x6000, so many callers in a loop for so many
// milliseconds, or @250x6000, so many callers a second, each of which calls once. The answer has
// the grants of each STEP milliseconds, and the number of calls that failed in the first 90% of their wait.
//
// The answer to cycles, once and load is "ready", after the preparations that are done only once.
// Then the runner writes "go". The answer to that, and to all other commands, is a line of
// figures, "done key=value ...", or "error" and its text. Times are in microseconds.
package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Kinds of cycles.
const (
	// Mutex acquires and releases an exclusive lock.
	Mutex = "mutex"

	// Mixed acquires and releases a reader in nine of ten cycles, and a writer in the
	// tenth: a Locker gets the kind Reader or Writer.
	Mixed = "mixed"

	// Reader acquires and releases a reader.
	Reader = "reader"

	// Writer acquires and releases a writer.
	Writer = "writer"

	// All acquires and releases eight names as one.
	All = "all"

	// Both acquires and releases two names as one.
	Both = "both"

	// Semaphore acquires and releases one of three permits.
	Semaphore = "semaphore"

	// Semaphore5 acquires and releases one of five permits.
	Semaphore5 = "semaphore5"

	// Async is Mutex with a release that does not wait for its confirmation, where the
	// library has one.
	Async = "async"

	// Alone is Mutex without passing the lock on inside the process, where the library does
	// that.
	Alone = "alone"

	// Keep is Mutex where a name that one process uses alone stays acquired between two
	// uses, where the library does that.
	Keep = "keep"

	// Try tries to acquire a name that another process holds.
	Try = "try"

	// TryLocal is Try for a name that this process holds.
	TryLocal = "trylocal"
)

// Kinds of names that a worker's goroutines acquire.
const (
	// Own is a separate name for each goroutine, the same in each cycle.
	Own = "own"

	// One is a single name for all goroutines of all processes.
	One = "one"

	// Fresh is a name that has never been used, in each cycle.
	Fresh = "fresh"
)

// AllNames is the number of names in a cycle of a kind that acquires several.
var AllNames = map[string]int{All: 8, Both: 2}

// Permits is the number of permits in a cycle of a kind that acquires one.
var Permits = map[string]int{Semaphore: 3, Semaphore5: 5}

// Locker is an opened library: one session, or the object that the library's users share
// between goroutines.
type Locker interface {
	// Prepare gets the number of goroutines before they start, and whether they all
	// want one name. Some libraries exclude two goroutines only if these have separate
	// sessions.
	Prepare(goroutines int, oneName bool) error

	// Acquire acquires the name in the way that kind says, and returns the function
	// that releases it, also after the end of ctx. goroutine is the index of the calling
	// goroutine. With the deadline of ctx, which is the caller's time limit, a library is used as
	// its documentation shows for one.
	Acquire(ctx context.Context, kind, name string, goroutine int) (release func() error, err error)

	// Try tries once to acquire a name that another process, or this one, holds. It
	// returns nil if the library refuses the lock, as expected.
	Try(ctx context.Context, name string) error

	// Leave is called after the last cycle of a goroutine that waits for a limited time, while
	// others go on. It ends what only that goroutine uses.
	Leave(goroutine int)

	// Close ends the session, or the library's equivalent of one.
	Close()
}

// ErrUnsupported is the error of a Locker whose library does not support an operation.
var ErrUnsupported = errors.New("this library does not support it")

// Serve executes the commands in the lines of in, until in ends. versions is the answer to
// the command versions. Serve closes l, and returns an error of reading in.
func Serve(l Locker, versions string, in io.Reader, out io.Writer) error {
	defer l.Close()
	w := &worker{locker: l, lines: bufio.NewScanner(in), out: out}
	for w.lines.Scan() {
		words := strings.Fields(w.lines.Text())
		if len(words) == 0 {
			continue
		}
		figures, err := w.do(words)
		if words[0] == "versions" {
			fmt.Fprintln(out, "done", versions)
			continue
		}
		if err != nil {
			fmt.Fprintln(out, "error", strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		line := "done"
		for _, key := range slices.Sorted(maps.Keys(figures)) {
			line += fmt.Sprintf(" %s=%.6g", key, figures[key])
		}
		fmt.Fprintln(out, line)
	}
	return w.lines.Err()
}

type worker struct {
	locker Locker
	lines  *bufio.Scanner
	out    io.Writer
	held   func() error // releases the lock that the command hold acquired
}

func (w *worker) do(words []string) (map[string]float64, error) {
	ctx := context.Background()
	switch words[0] {
	case "versions":
		return nil, nil
	case "hold":
		if err := w.locker.Prepare(1, false); err != nil {
			return nil, err
		}
		release, err := w.locker.Acquire(ctx, Mutex, words[1], 0)
		w.held = release
		return nil, err
	case "release":
		if w.held == nil {
			return nil, errors.New("release without a hold before it")
		}
		return nil, w.held()
	case "use":
		return w.use(ctx, words)
	case "load":
		return w.load(ctx, words)
	case "cycles", "once":
		t, err := parse(words)
		if err != nil {
			return nil, err
		}
		return w.run(ctx, t)
	}
	return nil, fmt.Errorf("unknown command %q", words[0])
}

// use acquires and releases one name several times in a row. It returns the times of the last
// one.
func (w *worker) use(ctx context.Context, words []string) (map[string]float64, error) {
	if len(words) < 4 {
		return nil, fmt.Errorf("use: %d words, want 4", len(words))
	}
	times, err := strconv.Atoi(words[3])
	if err != nil || times < 1 {
		return nil, fmt.Errorf("use: %q is not a number of times", words[3])
	}
	var acquired, released time.Duration
	for range times {
		t0 := time.Now()
		release, err := w.locker.Acquire(ctx, words[1], words[2], 0)
		if err != nil {
			return nil, err
		}
		t1 := time.Now()
		if err := release(); err != nil {
			return nil, err
		}
		acquired, released = t1.Sub(t0), time.Since(t1)
	}
	return map[string]float64{"acquire": micros(acquired), "release": micros(released)}, nil
}

// task is the work of a number of goroutines.
type task struct {
	kind, names, prefix string
	goroutines          int
	length              time.Duration // 0: one cycle for each goroutine
}

func parse(words []string) (t task, err error) {
	if len(words) < 5 {
		return t, fmt.Errorf("%s: %d words, want at least 5", words[0], len(words))
	}
	t.kind, t.names, t.prefix = words[1], words[3], words[4]
	if t.goroutines, err = strconv.Atoi(words[2]); err != nil {
		return t, err
	}
	if words[0] == "cycles" {
		if len(words) < 6 {
			return t, errors.New("cycles: the number of milliseconds is missing")
		}
		ms, err := strconv.Atoi(words[5])
		if err != nil {
			return t, err
		}
		t.length = time.Duration(ms) * time.Millisecond
	}
	return t, nil
}

// name returns the name that a goroutine acquires in a cycle.
func (t task) name(goroutine, cycle int) string {
	switch t.names {
	case Own:
		return t.prefix + "-" + strconv.Itoa(goroutine)
	case Fresh:
		return t.prefix + "-" + strconv.Itoa(goroutine) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-" + strconv.Itoa(cycle)
	}
	return t.prefix
}

// run starts the goroutines, which begin to work when the runner sends "go".
func (w *worker) run(ctx context.Context, t task) (map[string]float64, error) {
	if err := w.locker.Prepare(t.goroutines, t.names == One); err != nil {
		return nil, err
	}
	if t.kind == TryLocal {
		release, err := w.locker.Acquire(ctx, Mutex, t.name(0, 0), 0)
		if err != nil {
			return nil, err
		}
		defer func() { _ = release() }()
	}
	people, counted := make([]person, t.goroutines), new(atomic.Int64)
	var warm, done sync.WaitGroup
	warm.Add(t.goroutines)
	start, gate := make(chan struct{}), make(chan struct{}, 64)
	for g := range people {
		people[g].counted = counted
		done.Go(func() { people[g].work(ctx, w.locker, t, g, &warm, gate, start) })
	}
	warm.Wait()
	fmt.Fprintln(w.out, "ready")
	told := w.lines.Scan() && w.lines.Text() == "go"
	begin := time.Now()
	close(start)
	done.Wait()
	if !told {
		return nil, errors.New(`the runner did not send "go"`)
	}
	took := t.length
	if took == 0 {
		took = time.Since(begin)
	} else {
		for _, p := range people {
			took = max(took, p.to.Sub(p.from))
		}
	}
	return summary(people, took)
}
