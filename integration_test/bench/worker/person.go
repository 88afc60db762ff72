package worker

import (
	"context"
	"slices"
	"sync"
	"time"
)

// keep is how many times of a goroutine's cycles are kept, the newest ones.
const keep = 1 << 14

// person is one goroutine and its figures.
type person struct {
	cycles             int
	acquires, releases []time.Duration
	err                error
}

// work waits for start and then does t's cycles. What costs more the first time
// is done before warm is told, unless the task is to do it once.
func (p *person) work(ctx context.Context, l Locker, t task, g int, warm *sync.WaitGroup, start <-chan struct{}) {
	if t.length > 0 {
		p.err = p.cycle(ctx, l, t, g, -1)
		*p = person{err: p.err}
	}
	warm.Done()
	<-start
	begin := time.Now()
	for c := 0; p.err == nil; c++ {
		if t.length == 0 && c == 1 || t.length > 0 && time.Since(begin) >= t.length {
			return
		}
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
		p.note(time.Since(t0), 0)
		return nil
	}
	kind := t.kind
	if kind == Mixed {
		kind = Reader
		if (c+g)%10 == 0 {
			kind = Writer
		}
	}
	release, err := l.Acquire(ctx, kind, name, g)
	if err != nil {
		return err
	}
	t1 := time.Now()
	if err := release(); err != nil {
		return err
	}
	p.note(t1.Sub(t0), time.Since(t1))
	return nil
}

func (p *person) note(acquire, release time.Duration) {
	if i := p.cycles % keep; len(p.acquires) < keep {
		p.acquires, p.releases = append(p.acquires, acquire), append(p.releases, release)
	} else {
		p.acquires[i], p.releases[i] = acquire, release
	}
	p.cycles++
}

// summary puts the goroutines' figures together.
func summary(people []person, took time.Duration) (map[string]float64, error) {
	var acquires, releases []time.Duration
	cycles := 0
	for _, p := range people {
		if p.err != nil {
			return nil, p.err
		}
		cycles += p.cycles
		acquires, releases = append(acquires, p.acquires...), append(releases, p.releases...)
	}
	slices.Sort(acquires)
	slices.Sort(releases)
	return map[string]float64{
		"cycles":     float64(cycles),
		"seconds":    took.Seconds(),
		"acquire50":  quantile(acquires, .5),
		"acquire99":  quantile(acquires, .99),
		"acquireMax": quantile(acquires, 1),
		"release50":  quantile(releases, .5),
	}, nil
}

// quantile of sorted times, in microseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := min(len(sorted)-1, int(q*float64(len(sorted))))
	return float64(sorted[i]) / float64(time.Microsecond)
}
