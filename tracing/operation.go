package tracing

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/zklock/go-zklock/zklock"
)

// server is what a span shows about the server and the session of the last request.
type server struct {
	span trace.Span

	mu   sync.Mutex
	addr string // guarded by mu; as the span shows it

	session int64 // guarded by mu; as the span shows it
}

// releaseKey is the context key of the server that belongs to an observer's release span.
type releaseKey struct{ *observer }

// show sets a server's address and a session's id on the span.
func (s *server) show(addr string, session int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session != s.session {
		s.session = session
		s.span.SetAttributes(AttrSessionID.String(strconv.FormatUint(uint64(session), 16)))
	}
	if addr == "" || addr == s.addr {
		return
	}
	s.addr = addr
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	s.span.SetAttributes(AttrServerAddress.String(host))
	if n, err := strconv.Atoi(port); err == nil {
		s.span.SetAttributes(AttrServerPort.Int(n))
	}
}

// grouped are the kinds of operations that are sent in groups, in one transaction.
var grouped = map[string]bool{"commit": true, "enqueue": true, "requeue": true, "release": true, "txn": true, "verify": true, "mark": true, "reap": true}

// operation is the Operation hook. Requests do not have spans: an acquisition makes
// only one or two, and the metrics show which.
func (o *observer) operation(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
	if o.recorded.Load() {
		o.showServer(ctx, e)
	}
	timed, counted := o.instruments.operation.Enabled(ctx), o.instruments.group.Enabled(ctx)
	if !timed && !counted {
		return ctx, nil
	}
	started := time.Now()
	return ctx, func(err error) {
		s := series{operation: e.Kind}
		if counted && grouped[e.Kind] {
			o.instruments.group.Record(ctx, int64(e.Group), o.series.get(s).record...)
		}
		if timed {
			s.errorType = errorType(err)
			o.instruments.operation.Record(ctx, time.Since(started).Seconds(), o.series.get(s).record...)
		}
	}
}

// showServer sets the server's address and the session's id on the operation's acquire or
// release span. The span in ctx itself may be the application's.
func (o *observer) showServer(ctx context.Context, e zklock.OperationEvent) {
	s, _ := ctx.Value(releaseKey{o}).(*server)
	if s == nil {
		if a := o.acquisition(ctx); a != nil {
			s = &a.server
		}
	}
	if s != nil && s.span.IsRecording() {
		s.show(e.Server, e.Session)
	}
}
