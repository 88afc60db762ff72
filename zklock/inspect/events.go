package inspect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

const (
	// listEvery is the time from the end of one reading of the list to the next, at least.
	listEvery = 2 * time.Second

	// listShare limits which part of the time is spent on reading the list: one in so many.
	listShare = 4

	// quietEvery is how often a comment shows that a quiet stream still lives.
	quietEvery = 15 * time.Second

	// writeTimeout is how long a page may take to accept an event.
	writeTimeout = 30 * time.Second
)

// keyOf returns the key of the feed of a name, or, without one, of the list of a prefix.
func keyOf(name, prefix string) string {
	if name != "" {
		return "name " + name
	}
	return "list " + prefix
}

// serveEvents answers api/events. Each event's data is the number of a state.
func (i *inspector) serveEvents(w http.ResponseWriter, r *http.Request) {
	name, prefix := r.FormValue("name"), r.FormValue("prefix")
	run := func(ctx context.Context, publish func(state)) { i.followList(ctx, prefix, publish) }
	if name != "" {
		run = func(ctx context.Context, publish func(state)) { i.followName(ctx, name, publish) }
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	numbers, leave, ok := i.feeds.follow(keyOf(name, prefix), run)
	if !ok {
		fail(w, http.StatusServiceUnavailable, fmt.Errorf("%d pages are open already: close some", maxPages))
		return
	}
	defer leave()
	control := http.NewResponseController(w)
	quiet := time.NewTicker(quietEvery)
	defer quiet.Stop()
	text := ": open\n\n" // the first bytes, so that the page knows that it is connected
	for {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // the server's own would end the stream
		if _, err := w.Write([]byte(text)); err != nil || control.Flush() != nil {
			return
		}
		select {
		case number := <-numbers:
			text = fmt.Sprintf("data: %d\n\n", number)
		case <-quiet.C:
			text = ": quiet\n\n"
		case <-r.Context().Done():
			return
		}
	}
}

// followName publishes the queue of a name until ctx ends. An error that ends a Watch may go, as that of
// missing rights does: then followName begins again after a pause. It returns after an error that
// stays.
func (i *inspector) followName(ctx context.Context, name string, publish func(state)) {
	path := i.client.Mutex(name).Path()
	var last state
	for first := true; ; {
		var ended error
		for queue, err := range i.client.Watch(ctx, name) {
			if ctx.Err() != nil {
				return
			}
			s := state{lock: shown(name, path, queue)}
			if err != nil && !isRootMissing(err) {
				s = state{err: err}
			}
			if ended = err; first || !s.equals(last) {
				first, last = false, s
				publish(s)
			}
		}
		if errors.Is(ended, zklock.ErrInvalidName) || errors.Is(ended, zklock.ErrClosed) || !wait(ctx, listEvery) {
			return
		}
	}
}

// wait waits for some time. It reports false if ctx has ended.
func wait(ctx context.Context, d time.Duration) bool {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// followList publishes the list when it has changed, until ctx ends.
func (i *inspector) followList(ctx context.Context, prefix string, publish func(state)) {
	var last state
	for first := true; ; first = false {
		began := time.Now()
		var s state
		s.list, s.err = i.read(ctx, prefix, defaultLimit)
		if ctx.Err() != nil {
			return
		}
		if first || !s.equals(last) {
			last = s
			publish(s)
		}
		if !wait(ctx, max(listEvery, (listShare-1)*time.Since(began))) {
			return
		}
	}
}

// equals reports whether two states look the same.
func (s state) equals(other state) bool {
	if s.err != nil || other.err != nil {
		return s.err != nil && other.err != nil && s.err.Error() == other.err.Error()
	}
	return reflect.DeepEqual(s.list, other.list) && reflect.DeepEqual(s.lock, other.lock)
}
