package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// load is callers that want one name, each for a limited time. A caller that was refused comes again
// at once.
type load struct {
	kind, name string
	wait       time.Duration // the time limit of each caller
	work       time.Duration // how long a caller has the lock
	step       time.Duration // grants are counted for each step
	phases     []phase
}

// phase is a time with so many callers in a loop, or with so many callers a second that arrive
// independently and call once.
type phase struct {
	callers int
	rate    float64 // used if callers is 0
	length  time.Duration
}

func parseLoad(words []string) (l load, err error) {
	if len(words) < 7 {
		return l, fmt.Errorf("load: %d words, want at least 7", len(words))
	}
	l.kind, l.name = words[1], words[2]
	for i, to := range []*time.Duration{&l.wait, &l.work, &l.step} {
		if *to, err = milliseconds(words[3+i]); err != nil {
			return l, err
		}
	}
	for _, word := range words[6:] {
		var p phase
		count, length, _ := strings.Cut(word, "x")
		if rate, arrivals := strings.CutPrefix(count, "@"); arrivals {
			p.rate, err = strconv.ParseFloat(rate, 64)
		} else {
			p.callers, err = strconv.Atoi(count)
		}
		if err != nil {
			return l, fmt.Errorf("load: phase %q: %w", word, err)
		}
		if p.length, err = milliseconds(length); err != nil {
			return l, err
		}
		if p.callers < 1 && p.rate <= 0 {
			return l, fmt.Errorf("load: phase %q has no callers", word)
		}
		l.phases = append(l.phases, p)
	}
	return l, nil
}

// milliseconds reads a time of at least a millisecond.
func milliseconds(word string) (time.Duration, error) {
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("load: %q is not a number of milliseconds", word)
	}
	return time.Duration(n) * time.Millisecond, nil
}

// callers is the number of callers in a loop, over all phases. Those of one phase may still wait when
// the next phase begins.
func (l load) callers() (n int) {
	for _, p := range l.phases {
		n += max(1, p.callers)
	}
	return n
}

// tally counts what came of a load's calls.
type tally struct {
	start  time.Time
	step   time.Duration
	grants []atomic.Int64 // of each step
	failed atomic.Int64   // the calls that failed in the first 90% of their wait, and the releases that failed
}

// GrantsKey is the key of the figure that has the grants of a step of a load.
func GrantsKey(step int) string { return fmt.Sprintf("grants%03d", step) }

func (t *tally) figures() map[string]float64 {
	f := map[string]float64{"failed": float64(t.failed.Load())}
	for i := range t.grants {
		f[GrantsKey(i)] = float64(t.grants[i].Load())
	}
	return f
}

// load uses the name once, without a time limit, and lets the callers begin when the runner sends
// "go". It returns when the last of them has its answer.
func (w *worker) load(ctx context.Context, words []string) (map[string]float64, error) {
	l, err := parseLoad(words)
	if err != nil {
		return nil, err
	}
	if err := w.locker.Prepare(l.callers(), true); err != nil {
		return nil, err
	}
	release, err := w.locker.Acquire(ctx, variant(l.kind, 0), l.name, 0)
	if err != nil {
		return nil, err
	}
	if err := release(); err != nil {
		return nil, err
	}
	fmt.Fprintln(w.out, "ready")
	if !w.lines.Scan() || w.lines.Text() != "go" {
		return nil, errors.New(`the runner did not send "go"`)
	}
	return l.run(ctx, w.locker).figures(), nil
}

func (l load) run(ctx context.Context, locker Locker) *tally {
	var length time.Duration
	for _, p := range l.phases {
		length += p.length
	}
	t := &tally{start: time.Now(), step: l.step, grants: make([]atomic.Int64, length/l.step)}
	begin, first := t.start, 0
	var all sync.WaitGroup
	defer all.Wait()
	for _, p := range l.phases {
		from, to, g := begin, begin.Add(p.length), first
		if p.callers == 0 {
			all.Go(func() { l.arrive(ctx, locker, t, p.rate, from, to, g, &all) })
		}
		for i := range p.callers {
			all.Go(func() {
				time.Sleep(time.Until(from))
				for c := 0; time.Now().Before(to); c++ {
					l.call(ctx, locker, t, g+i, c)
				}
				locker.Leave(g + i)
			})
		}
		begin, first = to, first+max(1, p.callers)
	}
	return t
}

// arrive starts callers at random moments, so many a second on average. None of them waits for
// another one's answer before it comes, as the requests of many users.
func (l load) arrive(ctx context.Context, locker Locker, t *tally, rate float64, from, to time.Time, g int, all *sync.WaitGroup) {
	for c := 0; ; c++ {
		from = from.Add(time.Duration(rand.ExpFloat64() / rate * float64(time.Second)))
		if from.After(to) {
			return
		}
		time.Sleep(time.Until(from))
		all.Go(func() { l.call(ctx, locker, t, g, c) })
	}
}

// call waits for the lock for the load's time, works, and releases it.
func (l load) call(ctx context.Context, locker Locker, t *tally, g, c int) {
	limited, cancel := context.WithTimeout(ctx, l.wait)
	defer cancel()
	release, err := locker.Acquire(limited, variant(l.kind, c+g), l.name, g)
	if err != nil {
		if end, _ := limited.Deadline(); time.Until(end) > l.wait/10 { // a server may look at the time limit, too
			t.failed.Add(1)
		}
		return
	}
	if i := int(time.Since(t.start) / t.step); i < len(t.grants) {
		t.grants[i].Add(1)
	}
	time.Sleep(l.work)
	if err := release(); err != nil {
		t.failed.Add(1)
	}
}
