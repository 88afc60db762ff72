package main

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"
)

// workload says who wants what.
type workload struct {
	name       string
	goroutines int
	key        func(goroutine, cycle int) string
}

func own(g, _ int) string  { return "own-" + strconv.Itoa(g) }
func same(int, int) string { return "same" }
func fresh(g, cycle int) string {
	return "fresh-" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-" + strconv.Itoa(g) + "-" + strconv.Itoa(cycle)
}

var workloads = []workload{
	{"1 goroutine, known name", 1, own},
	{"1 goroutine, fresh name each time", 1, fresh},
	{"16 goroutines, 16 names", 16, own},
	{"64 goroutines, 64 names", 64, own},
	{"256 goroutines, 256 names", 256, own},
	{"64 goroutines, 1 name", 64, same},
}

// result is what one turn yielded.
type result struct {
	rate                            float64 // cycles a second
	acquire50, acquire99, release50 time.Duration
}

// locker is a contestant at work: one session, shared by all goroutines.
type locker interface {
	// acquire returns when name is held, and release gives it back.
	acquire(ctx context.Context, name string) (release func() error, err error)
	close()
}

// measure lets a contestant run a workload for a while. Names are acquired once
// before the clock starts.
func measure(ctx context.Context, c contestant, w workload, server string, length time.Duration) (result, error) {
	l, err := c.open(server)
	if err != nil {
		return result{}, err
	}
	defer l.close()
	if w.name == "64 goroutines, 1 name" && c.floor {
		w.key = own // the floor has no lock logic to contend with
	}
	type worker struct {
		acquires, releases []time.Duration
		err                error
	}
	workers := make([]worker, w.goroutines)
	var warm, done sync.WaitGroup
	warm.Add(w.goroutines)
	start := make(chan struct{})
	for g := range workers {
		done.Go(func() {
			me := &workers[g]
			release, err := l.acquire(ctx, w.key(g, -1))
			if err == nil {
				err = release()
			}
			warm.Done()
			<-start
			begin := time.Now()
			for cycle := 0; err == nil && time.Since(begin) < length; cycle++ {
				t0 := time.Now()
				if release, err = l.acquire(ctx, w.key(g, cycle)); err != nil {
					break
				}
				t1 := time.Now()
				if err = release(); err != nil {
					break
				}
				me.acquires = append(me.acquires, t1.Sub(t0))
				me.releases = append(me.releases, time.Since(t1))
			}
			me.err = err
		})
	}
	warm.Wait()
	begin := time.Now()
	close(start)
	done.Wait()
	took := time.Since(begin)
	var acquires, releases []time.Duration
	for _, me := range workers {
		if me.err != nil {
			return result{}, me.err
		}
		acquires, releases = append(acquires, me.acquires...), append(releases, me.releases...)
	}
	slices.Sort(acquires)
	slices.Sort(releases)
	at := func(d []time.Duration, q float64) time.Duration {
		if len(d) == 0 {
			return 0
		}
		return d[min(len(d)-1, int(q*float64(len(d))))]
	}
	return result{float64(len(acquires)) / took.Seconds(), at(acquires, .5), at(acquires, .99), at(releases, .5)}, nil
}
