// Package worker is a process that locks as the benchmark's runner tells it,
// with one library. The runner starts as many processes of a library as a
// workload wants and talks to them by lines; libraries in other languages, or
// with dependencies of their own, are programs that speak the same:
//
//	cycles KIND GOROUTINES NAMES PREFIX MILLISECONDS
//	once KIND GOROUTINES NAMES PREFIX
//	hold NAME
//	release
//	versions
//
// To cycles and once the answer is "ready", as soon as whatever is done once is
// done; then the runner writes "go", and the answer to that, as to all others,
// is a line of figures, "done key=value ...", or "error" and its text. Times are
// in microseconds.
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

// Kinds of what is done again and again.
const (
	// Mutex acquires and releases an exclusive lock.
	Mutex = "mutex"

	// Mixed acquires and releases a reader nine times of ten, else a writer:
	// a Locker is told Reader or Writer.
	Mixed = "mixed"

	// Reader acquires and releases a reader.
	Reader = "reader"

	// Writer acquires and releases a writer.
	Writer = "writer"

	// All acquires and releases eight names as one.
	All = "all"

	// Try tries to acquire a name that somebody else holds.
	Try = "try"

	// TryLocal is Try for a name that this process holds.
	TryLocal = "trylocal"
)

// What names a worker's goroutines want.
const (
	// Own is a name for each goroutine, the same again and again.
	Own = "own"

	// One is one name for all goroutines of all processes.
	One = "one"

	// Fresh is a name that has never been used, each time.
	Fresh = "fresh"
)

// AllNames is how many names All takes.
const AllNames = 8

// Locker is a library at work: one session, or what else its users would share
// between goroutines.
type Locker interface {
	// Prepare is told how many goroutines there are going to be, and whether
	// they want one name: there are libraries that exclude only goroutines
	// with a session each.
	Prepare(goroutines int, oneName bool) error

	// Acquire returns when the name is held, in the way that kind says, and
	// what gives it back. goroutine is the index of the one that wants it.
	Acquire(ctx context.Context, kind, name string, goroutine int) (release func() error, err error)

	// Try tries once to acquire a name that is held. Nothing else than being
	// refused is expected.
	Try(ctx context.Context, name string) error

	// Close ends it.
	Close()
}

// ErrUnsupported is the error of what a library cannot do.
var ErrUnsupported = errors.New("not to be had with this library")

// Serve does what the lines of in say until that ends. versions names what is
// measured.
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
	held   func() error // what hold holds
}

func (w *worker) do(words []string) (map[string]float64, error) {
	ctx := context.Background()
	switch words[0] {
	case "versions":
		return nil, nil
	case "hold":
		release, err := w.locker.Acquire(ctx, Mutex, words[1], 0)
		w.held = release
		return nil, err
	case "release":
		if w.held == nil {
			return nil, errors.New("nothing is held")
		}
		return nil, w.held()
	case "cycles", "once":
		t, err := parse(words)
		if err != nil {
			return nil, err
		}
		return w.run(ctx, t)
	}
	return nil, fmt.Errorf("unknown command %q", words[0])
}

// task is what a number of goroutines do.
type task struct {
	kind, names, prefix string
	goroutines          int
	length              time.Duration // 0: once
}

func parse(words []string) (t task, err error) {
	if len(words) < 5 {
		return t, fmt.Errorf("%s: %d words", words[0], len(words))
	}
	t.kind, t.names, t.prefix = words[1], words[3], words[4]
	if t.goroutines, err = strconv.Atoi(words[2]); err != nil {
		return t, err
	}
	if words[0] == "cycles" {
		if len(words) < 6 {
			return t, errors.New("cycles: no time")
		}
		ms, err := strconv.Atoi(words[5])
		if err != nil {
			return t, err
		}
		t.length = time.Duration(ms) * time.Millisecond
	}
	return t, nil
}

// name is what a goroutine wants in a cycle.
func (t task) name(goroutine, cycle int) string {
	switch t.names {
	case Own:
		return t.prefix + "-" + strconv.Itoa(goroutine)
	case Fresh:
		return t.prefix + "-" + strconv.Itoa(goroutine) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-" + strconv.Itoa(cycle)
	}
	return t.prefix
}

// run lets the goroutines work from the runner's "go" on.
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
		return nil, errors.New("not told to go")
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
