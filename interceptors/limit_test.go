package interceptors_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/zklock/go-zklock/interceptors"
	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// serveHTTP runs the service as a handler of a net/http server with a WriteTimeout, in a synctest bubble.
func serveHTTP(t *testing.T, s *shop, timeout time.Duration, pick interceptors.Pick, opts ...interceptors.Option) *grpc.ClientConn {
	t.Helper()
	s.t = t
	server := grpc.NewServer(grpc.UnaryInterceptor(interceptors.UnaryServerInterceptor(pick, opts...)), grpc.StreamInterceptor(interceptors.StreamServerInterceptor(pick, opts...)))
	server.RegisterService(&shopDesc, s)
	web := &http.Server{Handler: server, WriteTimeout: timeout, Protocols: new(http.Protocols)}
	web.Protocols.SetUnencryptedHTTP2(true)
	dial := testworld.Serve(t, web).Transport.(*http.Transport).DialContext
	conn, err := grpc.NewClient("passthrough:///shop", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx, "", "") }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// A gRPC server that is a handler of a net/http server has that one's WriteTimeout. When it cannot answer a call
// any longer, it has to refuse it before that, whatever the call waits for: each case says how, and after how long.
func TestWaitEndsBeforeTheServersWriteTimeout(t *testing.T) {
	for _, c := range []struct {
		what    string
		timeout time.Duration // its WriteTimeout
		opts    []interceptors.Option
		proto   bool // the .proto file declares a wait of 2 s
		outage  bool
		code    codes.Code
		reason  string
		after   time.Duration
	}{
		{what: "another holder", timeout: time.Second, code: codes.Aborted, reason: interceptors.ReasonContended, after: 900 * time.Millisecond},
		{what: "a declared wait", timeout: time.Second, proto: true, code: codes.Aborted, reason: interceptors.ReasonContended, after: 900 * time.Millisecond},
		{what: "a long one", timeout: time.Minute, after: 3 * time.Second},
		{what: "none", after: 3 * time.Second},
		{what: "another one of the interceptor", timeout: time.Minute, opts: []interceptors.Option{interceptors.WithWriteTimeout(time.Second)},
			code: codes.Aborted, reason: interceptors.ReasonContended, after: 900 * time.Millisecond},
		{what: "an outage", timeout: time.Second, outage: true, code: codes.Unavailable, reason: interceptors.ReasonUnavailable, after: 900 * time.Millisecond},
		{what: "an outage, and a try", timeout: time.Second, outage: true, opts: []interceptors.Option{interceptors.WithWait(0)},
			code: codes.Unavailable, reason: interceptors.ReasonUnavailable, after: 900 * time.Millisecond},
		{what: "a try", timeout: time.Second, opts: []interceptors.Option{interceptors.WithWait(0)}, code: codes.Aborted, reason: interceptors.ReasonContended},
	} {
		for kind, first := range map[string]bool{"unary": false, "stream": false, "stream by its first message": true} {
			if c.proto && kind != "unary" {
				continue // its method declares no wait
			}
			t.Run(c.what+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					release := w.Hold("orders/42")
					if c.outage {
						release()
						w.ensemble.Partition(memdriver.AroundClients(0).Reset())
						t.Cleanup(func() { w.ensemble.Heal() })
					} else {
						time.AfterFunc(3*time.Second, release)
					}
					served := false
					s := &shop{
						pay:   func(_ context.Context, m *text) (*text, error) { served = true; return m, nil },
						watch: func(*text, grpc.ServerStreamingServer[text]) error { served = true; return nil },
					}
					pick := interceptors.Pick(w.fixed)
					if c.proto {
						pick = interceptors.FromProto(w.client)
					}
					shop := newShop(serveHTTP(t, s, c.timeout, pick, append(firstIf(first), c.opts...)...))
					start := time.Now()
					var err error
					if kind == "unary" {
						_, err = shop.Pay(t.Context(), &text{Value: "42"})
					} else {
						var stream grpc.ServerStreamingClient[text]
						if stream, err = shop.Watch(t.Context(), &text{Value: "42"}); err == nil {
							err = drain(stream)
						}
					}
					if after := time.Since(start); after != c.after {
						t.Errorf("the answer came after %v, want %v", after, c.after)
					}
					if c.code != codes.OK {
						wantStatus(t, err, c.code, c.reason)
					} else if err != nil {
						t.Error(err)
					}
					time.Sleep(4 * time.Second) // until the lock is free for the call if it still waits
					if served != (c.code == codes.OK) {
						t.Errorf("the handler ran: %v", served)
					}
				})
			})
		}
	}
}
