package worker

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// keep is the number of cycles of a goroutine whose times are kept: the newest ones.
const keep = 1 << 14

// Cycles at the beginning and at the end of a turn are not counted. Processes do not start
// at the same moment, and the first one has no rivals; neither has the last one at the end.
// The two times are these fractions of the time that counts: a quarter before it and a
// tenth after it.
const (
	before = 4
	after  = 10
)

// person is one goroutine and its figures.
type person struct {
	cycles             int // the cycles that count
	total              int // all cycles since the start
	acquires, releases []time.Duration
	from, to           time.Time     // a cycle counts if it ends between these
	counted            *atomic.Int64 // the cycles that count of all the process's goroutines
	err                error
}

// work waits for start and then does t's cycles. The first cycle of a goroutine is slower than the
// others. So if the task has a length, and is not just a single cycle, work does one cycle before
// it calls warm.Done. gate bounds the number of goroutines that do this at the same time.
//
// The cycles that end between p.from and p.to count. If the process completes none, that time is
// extended until its first cycle ends. So the result of a machine that stood still is a slow cycle,
// and not none.
func (p *person) work(ctx context.Context, l Locker, t task, g int, warm *sync.WaitGroup, gate chan struct{}, start <-chan struct{}) {
	if t.length > 0 {
		gate <- struct{}{}
		p.err = p.cycle(ctx, l, t, g, -1)
		<-gate
		p.total = 0
	}
	warm.Done()
	<-start
	if t.length == 0 {
		p.to = time.Now().Add(time.Hour)
		p.err = p.cycle(ctx, l, t, g, 0)
		return
	}
	p.from = time.Now().Add(t.length / before)
	p.to = p.from.Add(t.length)
	end := p.to.Add(t.length / after)
	for c := 0; p.err == nil && (time.Now().Before(end) || p.counted.Load() == 0); c++ {
		p.err = p.cycle(ctx, l, t, g, c)
	}
}

func (p *person) cycle(ctx context.Context, l Locker, t task, g, c int) error {
	name := t.name(g, c)
	t0 := time.Now()
	if t.kind == Try || t.kind == TryLocal {
		if err := l.Try(ctx, name); err != nil {
			return err
		}
		t1 := time.Now()
		p.note(t1, t1.Sub(t0), 0)
		return nil
	}
	release, err := l.Acquire(ctx, variant(t.kind, c+g), name, g)
	if err != nil {
		return err
	}
	t1 := time.Now()
	if err := release(); err != nil {
		return err
	}
	t2 := time.Now()
	p.note(t2, t1.Sub(t0), t2.Sub(t1))
	return nil
}

// variant returns the kind that a Locker gets for the nth cycle of a kind.
func variant(kind string, n int) string {
	switch {
	case kind != Mixed:
		return kind
	case n%10 == 0:
		return Writer
	}
	return Reader
}

// note records a cycle that ended at the time at, if it counts.
func (p *person) note(at time.Time, acquire, release time.Duration) {
	p.total++
	if p.to.IsZero() || at.Before(p.from) { // the cycle before start, or one before the time that counts
		return
	}
	if !at.Before(p.to) {
		if !p.counted.CompareAndSwap(0, 1) {
			return
		}
		p.to = at
	} else {
		p.counted.Add(1)
	}
	if i := p.cycles % keep; len(p.acquires) < keep {
		p.acquires, p.releases = append(p.acquires, acquire), append(p.releases, release)
	} else {
		p.acquires[i], p.releases[i] = acquire, release
	}
	p.cycles++
}

// summary combines the goroutines' figures.
func summary(people []person, took time.Duration) (map[string]float64, error) {
	var acquires, releases []time.Duration
	cycles, total := 0, 0
	for _, p := range people {
		if p.err != nil {
			return nil, p.err
		}
		cycles += p.cycles
		total += p.total
		acquires, releases = append(acquires, p.acquires...), append(releases, p.releases...)
	}
	slices.Sort(acquires)
	slices.Sort(releases)
	return map[string]float64{
		"cycles":     float64(cycles),
		"total":      float64(total),
		"seconds":    took.Seconds(),
		"acquire50":  quantile(acquires, .5),
		"acquire99":  quantile(acquires, .99),
		"acquireMax": quantile(acquires, 1),
		"release50":  quantile(releases, .5),
	}, nil
}

// quantile returns a quantile of sorted times, in microseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return micros(sorted[min(len(sorted)-1, int(q*float64(len(sorted))))])
}

// micros returns a time in microseconds.
func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
