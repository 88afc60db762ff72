package middleware_test

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/zklock/go-zklock/middleware"
)

// The interfaces that a ResponseWriter may implement in addition.
type (
	flusher  struct{ count *int }
	hijacker struct{}
	pusher   struct{ target *string }
	notifier struct{}
)

func (f flusher) Flush() { *f.count++ }
func (hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}
func (p pusher) Push(target string, _ *http.PushOptions) error { *p.target = target; return nil }
func (notifier) CloseNotify() <-chan bool                      { return nil }

func TestWriterHasTheInterfacesOfTheOneUnderneath(t *testing.T) {
	type rw = http.ResponseWriter
	var flushed int
	var pushed string
	f, h, p, n := flusher{&flushed}, hijacker{}, pusher{&pushed}, notifier{}
	variants := []func(rw) rw{
		func(w rw) rw { return struct{ rw }{w} },
		func(w rw) rw {
			return struct {
				rw
				flusher
			}{w, f}
		},
		func(w rw) rw {
			return struct {
				rw
				hijacker
			}{w, h}
		},
		func(w rw) rw {
			return struct {
				rw
				flusher
				hijacker
			}{w, f, h}
		},
		func(w rw) rw {
			return struct {
				rw
				pusher
			}{w, p}
		},
		func(w rw) rw {
			return struct {
				rw
				flusher
				pusher
			}{w, f, p}
		},
		func(w rw) rw {
			return struct {
				rw
				hijacker
				pusher
			}{w, h, p}
		},
		func(w rw) rw {
			return struct {
				rw
				flusher
				hijacker
				pusher
			}{w, f, h, p}
		},
		func(w rw) rw {
			return struct {
				rw
				notifier
			}{w, n}
		},
		func(w rw) rw {
			return struct {
				rw
				flusher
				notifier
			}{w, f, n}
		},
		func(w rw) rw {
			return struct {
				rw
				hijacker
				notifier
			}{w, h, n}
		},
		func(w rw) rw {
			return struct {
				rw
				flusher
				hijacker
				notifier
			}{w, f, h, n}
		},
		func(w rw) rw {
			return struct {
				rw
				pusher
				notifier
			}{w, p, n}
		},
		func(w rw) rw {
			return struct {
				rw
				flusher
				pusher
				notifier
			}{w, f, p, n}
		},
		func(w rw) rw {
			return struct {
				rw
				hijacker
				pusher
				notifier
			}{w, h, p, n}
		},
		func(w rw) rw {
			return struct {
				rw
				flusher
				hijacker
				pusher
				notifier
			}{w, f, h, p, n}
		},
	}
	w := newWorld(t)
	for i, variant := range variants {
		flushed, pushed = 0, ""
		middleware.New(w.fixed)(w.watched(func(got http.ResponseWriter, _ *http.Request) {
			for bit, has := range []func() bool{
				func() bool { _, ok := got.(http.Flusher); return ok },
				func() bool { _, ok := got.(http.Hijacker); return ok },
				func() bool { _, ok := got.(http.Pusher); return ok },
				//lint:ignore SA1019 gin uses it
				func() bool { _, ok := got.(http.CloseNotifier); return ok },
			} {
				if want := i&(1<<bit) != 0; has() != want {
					t.Errorf("variant %04b: the writer has interface %d: %v, want %v", i, bit, !want, want)
				}
			}
			if f, ok := got.(http.Flusher); ok {
				f.Flush()
			}
			if p, ok := got.(http.Pusher); ok {
				p.Push("/style.css", nil)
			}
		})).ServeHTTP(variant(httptest.NewRecorder()), httptest.NewRequest("GET", "/", nil))
		if flushed != i&1 || (pushed != "") != (i&4 != 0) {
			t.Errorf("variant %04b: flushed %d times, pushed %q", i, flushed, pushed)
		}
	}
}
