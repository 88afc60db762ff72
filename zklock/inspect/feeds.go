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

	last  string                   // guarded by feeds.mu; the newest state; "" before the first
	pages map[chan string]struct{} // guarded by feeds.mu
}

// maxPages is how many pages may follow something at the same time.
const maxPages = 256

// follow returns a channel with the states of a feed: the newest one first, and then each
// later one, except those that are replaced before the page takes them. run makes the states
// and calls publish with each; it ends when its context ends. follow returns false if too
// many pages are open. The page has to call leave.
func (f *feeds) follow(key string, run func(ctx context.Context, publish func(string))) (states <-chan string, leave func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pages == maxPages {
		return nil, nil, false
	}
	f.pages++
	fd := f.byKey[key]
	if fd == nil {
		ctx, cancel := context.WithCancel(context.Background())
		fd = &feed{stop: cancel, done: make(chan struct{}), pages: make(map[chan string]struct{})}
		if f.byKey == nil {
			f.byKey = make(map[string]*feed)
		}
		f.byKey[key] = fd
		go func() {
			defer close(fd.done)
			run(ctx, func(state string) { f.publish(fd, state) })
		}()
	}
	page := make(chan string, 1)
	if fd.last != "" {
		page <- fd.last
	}
	fd.pages[page] = struct{}{}
	return page, func() { f.leave(key, fd, page) }, true
}

// publish gives a state to all pages of a feed. A page that has not taken the state before
// gets the new one instead.
func (f *feeds) publish(fd *feed, state string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fd.last = state
	for page := range fd.pages {
		select {
		case <-page:
		default:
		}
		page <- state // never waits: only publish sends, under mu, and the channel is empty
	}
}

// leave takes a page off its feed. The last page ends the feed, and waits for that.
func (f *feeds) leave(key string, fd *feed, page chan string) {
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
