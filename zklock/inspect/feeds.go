package inspect

import (
	"context"
	"sync"
)

// feeds shares what open pages follow: all pages that show the same have one feed, which
// runs while there is a page.
type feeds struct {
	mu    sync.Mutex
	byKey map[string]*feed // guarded by mu
	pages int              // guarded by mu
}

// feed is something that pages follow.
type feed struct {
	stop context.CancelFunc
	done chan struct{} // closed when the feed's goroutine has ended

	last  state                 // guarded by feeds.mu; the newest state
	pages map[chan int]struct{} // guarded by feeds.mu
}

// state is what a feed knows at a moment: a list, or one name, or why it is not known.
type state struct {
	number int // of the state in its feed, from 1 on; 0 before the first
	list   list
	lock   lock
	err    error
}

// maxPages is how many pages may follow something at the same time.
const maxPages = 256

// follow returns a channel with the numbers of a feed's states: first the newest, and then each
// later one. A state that is replaced before the page takes it is left out. run makes the
// states and calls publish with each; it ends when its context ends. follow returns false if
// too many pages are open. The page must call leave.
func (f *feeds) follow(key string, run func(ctx context.Context, publish func(state))) (numbers <-chan int, leave func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pages == maxPages {
		return nil, nil, false
	}
	f.pages++
	fd := f.byKey[key]
	if fd == nil {
		ctx, cancel := context.WithCancel(context.Background())
		fd = &feed{stop: cancel, done: make(chan struct{}), pages: make(map[chan int]struct{})}
		if f.byKey == nil {
			f.byKey = make(map[string]*feed)
		}
		f.byKey[key] = fd
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
	return page, func() { f.leave(key, fd, page) }, true
}

// newest returns the newest state of a feed, which costs no request; false if there is none.
func (f *feeds) newest(key string) (state, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fd := f.byKey[key]
	if fd == nil || fd.last.number == 0 {
		return state{}, false
	}
	return fd.last, true
}

// publish gives the number of a new state to all pages of a feed. A page that has not taken the
// number before gets the new one instead.
func (f *feeds) publish(fd *feed, s state) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.number = fd.last.number + 1
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
func (f *feeds) leave(key string, fd *feed, page chan int) {
	f.mu.Lock()
	f.pages--
	delete(fd.pages, page)
	last := len(fd.pages) == 0
	if last {
		delete(f.byKey, key)
	}
	f.mu.Unlock()
	if last {
		fd.stop()
		<-fd.done
	}
}
