package inspect

import (
	"context"
	"sync"
	"time"
)

// feeds shares what open pages follow: all pages that show the same have one feed, which
// runs while there is a page.
type feeds struct {
	mu     sync.Mutex
	byView map[view]*feed // guarded by mu
	pages  int            // guarded by mu
	loaded loaded         // guarded by mu; the newest
}

// loaded is what was read for a page that has no feed yet. A page asks for its events as soon as it is there, and
// what it has shown is the first state of its feed: it can be filtered while that reads ten thousand names.
type loaded struct {
	view  view
	state state
	at    time.Time
}

// loadedFor is how long a page has time to ask for its events.
const loadedFor = 10 * time.Second

// feed is something that pages follow.
type feed struct {
	stop context.CancelFunc
	done chan struct{} // closed when the feed's goroutine has ended

	last  state                 // guarded by feeds.mu; the newest state
	pages map[chan int]struct{} // guarded by feeds.mu
}

// maxPages is how many pages may follow something at the same time.
const maxPages = 256

// keep notes what was read for a page that has no feed.
func (f *feeds) keep(v view, s state) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loaded = loaded{v, s, time.Now()}
}

// follow returns a channel with the numbers of a feed's states: first the newest, and then each
// later one. A state that is replaced before the page takes it is left out. run makes the
// states and calls publish with each; it ends when its context ends. follow returns false if
// too many pages are open. The page must call leave.
func (f *feeds) follow(v view, run func(ctx context.Context, publish func(state))) (numbers <-chan int, leave func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pages == maxPages {
		return nil, nil, false
	}
	f.pages++
	fd := f.byView[v]
	if fd == nil {
		ctx, cancel := context.WithCancel(context.Background())
		fd = &feed{stop: cancel, done: make(chan struct{}), pages: make(map[chan int]struct{})}
		if f.byView == nil {
			f.byView = make(map[view]*feed)
		}
		f.byView[v] = fd
		if f.loaded.view == v && time.Since(f.loaded.at) <= loadedFor && !f.loaded.at.IsZero() {
			fd.last = f.loaded.state
			fd.last.number = 1
		}
		f.loaded = loaded{}
		go func() {
			defer close(fd.done)
			run(ctx, func(s state) { f.publish(fd, s) })
		}()
	}
	page := make(chan int, 1)
	if fd.last.number > 0 {
		page <- fd.last.number
	}
	fd.pages[page] = struct{}{}
	return page, func() { f.leave(v, fd, page) }, true
}

// newest returns the newest state of a feed, which costs no request; false if there is none.
func (f *feeds) newest(v view) (state, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fd := f.byView[v]
	if fd == nil || fd.last.number == 0 {
		return state{}, false
	}
	return fd.last, true
}

// publish gives the number of a new state to all pages of a feed, if it differs from the last one. A
// page that has not taken the number before gets the new one instead.
func (f *feeds) publish(fd *feed, s state) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.err != nil && unanswered(s.err) != nil && fd.last.number > 0 { // the last answer stays, with the error
		s.list, s.lock, s.at, s.here, s.unsent, s.fault = fd.last.list, fd.last.lock, fd.last.at, fd.last.here, fd.last.unsent, fd.last.fault
	}
	if s.number = fd.last.number + 1; s.number > 1 && s.equals(fd.last) {
		fd.last.at = s.at
		return
	}
	fd.last = s
	for page := range fd.pages {
		select {
		case <-page:
		default:
		}
		page <- s.number // never waits: only publish sends, under mu, and the channel is empty
	}
}

// leave takes a page off its feed. The last page ends the feed, and waits for that.
func (f *feeds) leave(v view, fd *feed, page chan int) {
	f.mu.Lock()
	f.pages--
	delete(fd.pages, page)
	last := len(fd.pages) == 0
	if last {
		delete(f.byView, v)
	}
	f.mu.Unlock()
	if last {
		fd.stop()
		<-fd.done
	}
}
