package zkdriver

import "sync"

// idleWorkers is how many goroutines a session keeps for its next requests.
const idleWorkers = 32

// workers runs calls that block, on goroutines that are reused. The client's calls
// cannot be cancelled, so each call needs a goroutine that can be abandoned with it.
type workers struct {
	work chan func()
	keep chan struct{} // holds a token for each worker that waits, or is about to wait
	quit chan struct{}
	wg   sync.WaitGroup
}

func (w *workers) init() {
	w.work = make(chan func())
	w.keep = make(chan struct{}, idleWorkers)
	w.quit = make(chan struct{})
}

// do runs f on an idle worker or on a new one. It must not be called after
// stop.
func (w *workers) do(f func()) {
	select {
	case w.work <- f:
	default:
		w.wg.Go(func() { w.loop(f) })
	}
}

// loop runs f, and then further calls, until enough other workers wait.
func (w *workers) loop(f func()) {
	for {
		f()
		select {
		case w.keep <- struct{}{}:
		default:
			return
		}
		select {
		case f = <-w.work:
			<-w.keep
		case <-w.quit:
			return
		}
	}
}

// stop ends the workers and waits until the last call has returned.
func (w *workers) stop() {
	close(w.quit)
	w.wg.Wait()
}
