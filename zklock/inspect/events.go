package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// listEvery is the time from the end of one reading of the list to the next, at least.
	listEvery = 2 * time.Second

	// listShare limits which part of the time is spent on reading the list: one in so many.
	listShare = 4

	// quietEvery is the time after which a comment shows that a stream still lives.
	quietEvery = 15 * time.Second

	// writeTimeout is how long a page may take to accept an event.
	writeTimeout = 30 * time.Second
)

// serveEvents answers api/events. Each event's data is what the API returns for the same
// question, or an object with the key error.
func (i *inspector) serveEvents(w http.ResponseWriter, r *http.Request) {
	name, prefix := r.FormValue("name"), r.FormValue("prefix")
	key, run := "list "+prefix, func(ctx context.Context, publish func(string)) { i.followList(ctx, prefix, publish) }
	if name != "" {
		key, run = "name "+name, func(ctx context.Context, publish func(string)) { i.followName(ctx, name, publish) }
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	states, leave, ok := i.feeds.follow(key, run)
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
		case state := <-states:
			text = "data: " + state + "\n\n" // JSON has no line breaks
		case <-quiet.C:
			text = ": quiet\n\n"
		case <-r.Context().Done():
			return
		}
	}
}

// followName publishes the queue of a name until ctx ends.
func (i *inspector) followName(ctx context.Context, name string, publish func(string)) {
	path := i.client.Mutex(name).Path()
	for queue, err := range i.client.Watch(ctx, name) {
		switch {
		case ctx.Err() != nil:
		case err != nil:
			publish(encoded(map[string]string{"error": err.Error()}))
		default:
			publish(encoded(shown(name, path, queue)))
		}
	}
}

// followList publishes the list when it has changed, until ctx ends.
func (i *inspector) followList(ctx context.Context, prefix string, publish func(string)) {
	last := ""
	for {
		began := time.Now()
		state := ""
		l, err := i.read(ctx, prefix, defaultLimit)
		if err != nil {
			state = encoded(map[string]string{"error": err.Error()})
		} else {
			state = encoded(l)
		}
		if ctx.Err() != nil {
			return
		}
		if state != last {
			last = state
			publish(state)
		}
		pause := time.NewTimer(max(listEvery, (listShare-1)*time.Since(began)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
}

// encoded returns a value as JSON in one line.
func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return `{"error":"the state cannot be written as JSON"}` // impossible for strings, numbers and lists
	}
	return string(b)
}
