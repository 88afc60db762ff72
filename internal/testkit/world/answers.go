package world

import (
	"context"
	"sync"
	"time"
)

// Caller calls a service until it has its answer, or leaves. It reports whether it got the answer.
type Caller func() bool

// Leaves returns a Caller that leaves after a time: its context is cancelled then. If it has a deadline, that
// comes later.
func Leaves(after time.Duration, with func() (context.Context, context.CancelFunc), serve func(context.Context) error) Caller {
	return func() bool {
		ctx, cancel := with()
		defer cancel()
		defer time.AfterFunc(after, cancel).Stop()
		return serve(ctx) == nil && ctx.Err() == nil
	}
}

// Answers has a number of callers call in a loop for some seconds, and returns the answers of each second.
func Answers(seconds, callers int, call Caller) []int {
	answers, began := make([]int, seconds), time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for {
				ok := call()
				at := int(time.Since(began) / time.Second)
				if at >= seconds {
					return
				}
				if ok {
					mu.Lock()
					answers[at]++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return answers
}
