package inspect

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	// beatEvery is how often a stream says whether the ensemble answers. Without it, a page takes
	// its own connection for broken.
	beatEvery = 5 * time.Second

	// lookEvery is how often a stream looks whether the ensemble still answers.
	lookEvery = time.Second

	// writeTimeout is how long a page may take to accept an event.
	writeTimeout = 30 * time.Second
)

// serveEvents answers api/events. The data of an event without a name is the number of a state. The
// data of an event "silent" is since when the ensemble has not answered, in milliseconds since the
// Unix epoch; 0 if it answers.
func (i *inspector) serveEvents(w http.ResponseWriter, r *http.Request) {
	v := view{name: r.FormValue("name"), prefix: r.FormValue("prefix")}
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	numbers, leave, ok := i.feeds.follow(v, func(ctx context.Context, publish func(state)) { i.follow(ctx, v, publish) })
	if !ok {
		fail(w, http.StatusServiceUnavailable, fmt.Errorf("%d pages are open already: close some", maxPages))
		return
	}
	defer leave()
	control := http.NewResponseController(w)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	silent, beat := i.silent(), time.Now()
	newest, departures := 0, i.client.Stats().Departures
	text := silentEvent(silent) // the first bytes, so that the page knows that it is connected
	for {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // the server's own would end the stream
		if _, err := w.Write([]byte(text)); err != nil || control.Flush() != nil {
			return
		}
		for text = ""; text == ""; {
			select {
			case newest = <-numbers:
				text = fmt.Sprintf("data: %d\n\n", newest)
			case <-look.C:
				if n := i.client.Stats().Departures; n != departures && newest > 0 {
					departures = n // the state is as before, and the page says one thing more
					text = fmt.Sprintf("data: %d\n\n", newest)
				}
				if now := i.silent(); now != silent || time.Since(beat) >= beatEvery {
					silent, beat = now, time.Now()
					text += silentEvent(silent)
				}
			case <-r.Context().Done():
				return
			}
		}
	}
}

// silent returns since when the ensemble has not answered, as the page wants it; 0 if it answers.
func (i *inspector) silent() int64 {
	if since := i.pulse.silent(i.client); !since.IsZero() {
		return since.UnixMilli()
	}
	return 0
}

func silentEvent(since int64) string { return fmt.Sprintf("event: silent\ndata: %d\n\n", since) }
