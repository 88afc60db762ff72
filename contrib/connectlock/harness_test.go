package connectlock_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// text is the message of all calls. ByField finds its field "value".
type text = wrapperspb.StringValue

// The procedures of the service.
const (
	pay    = "/zklock.test.connect.v1.Shop/Pay"
	upload = "/zklock.test.connect.v1.Shop/Upload"
	watch  = "/zklock.test.connect.v1.Shop/Watch"
	chat   = "/zklock.test.connect.v1.Shop/Chat"
)

// protocols has the client's options for each protocol.
var protocols = map[string][]connect.ClientOption{
	"connect": nil,
	"grpc":    {connect.WithGRPC()},
	"grpcweb": {connect.WithGRPCWeb()},
}

// shop is a service. A test sets the handlers that it needs.
type shop struct {
	pay    func(ctx context.Context, m *text) (*text, error)
	upload func(ctx context.Context, s *connect.ClientStream[text]) (*text, error)
	watch  func(ctx context.Context, m *text, s *connect.ServerStream[text]) error
	chat   func(ctx context.Context, s *connect.BidiStream[text, text]) error
}

// site is a server and its clients.
type site struct {
	pay, upload, watch, chat *connect.Client[text, text]
}

// serve serves the shop over HTTP/2 until the test has ended.
func serve(t *testing.T, s shop, handler connect.Interceptor, opts ...connect.ClientOption) site {
	t.Helper()
	c, hangUp := dial(listen(t, s, handler), opts...)
	t.Cleanup(hangUp)
	return c
}

// dial returns clients that speak HTTP/2 to a server. hangUp closes their connections.
func dial(address string, opts ...connect.ClientOption) (s site, hangUp func()) {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	client := func(procedure string) *connect.Client[text, text] {
		return connect.NewClient[text, text](&http.Client{Transport: transport}, address+procedure, opts...)
	}
	return site{pay: client(pay), upload: client(upload), watch: client(watch), chat: client(chat)}, transport.CloseIdleConnections
}

// listen serves the shop over HTTP/1.1 and HTTP/2 until the test has ended, and returns its URL.
func listen(t *testing.T, s shop, handler connect.Interceptor) string {
	t.Helper()
	server := start(s, handler)
	t.Cleanup(server.Close)
	return server.URL
}

// start serves the shop over HTTP/1.1 and HTTP/2.
func start(s shop, lock connect.Interceptor) *httptest.Server {
	server := httptest.NewUnstartedServer(handler(s, lock))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	return server
}

// handler returns the handler of the shop's calls.
func handler(s shop, lock connect.Interceptor) http.Handler {
	mux := http.NewServeMux()
	var with []connect.HandlerOption
	if lock != nil {
		with = append(with, connect.WithInterceptors(lock))
	}
	mux.Handle(pay, connect.NewUnaryHandler(pay, func(ctx context.Context, r *connect.Request[text]) (*connect.Response[text], error) {
		m, err := s.pay(ctx, r.Msg)
		if err != nil {
			return nil, err
		}
		return connect.NewResponse(m), nil
	}, with...))
	mux.Handle(upload, connect.NewClientStreamHandler(upload, func(ctx context.Context, c *connect.ClientStream[text]) (*connect.Response[text], error) {
		m, err := s.upload(ctx, c)
		if err != nil {
			return nil, err
		}
		return connect.NewResponse(m), nil
	}, with...))
	mux.Handle(watch, connect.NewServerStreamHandler(watch, func(ctx context.Context, r *connect.Request[text], c *connect.ServerStream[text]) error {
		return s.watch(ctx, r.Msg, c)
	}, with...))
	mux.Handle(chat, connect.NewBidiStreamHandler(chat, func(ctx context.Context, c *connect.BidiStream[text, text]) error {
		return s.chat(ctx, c)
	}, with...))
	return mux
}

// call makes a unary call.
func call(ctx context.Context, c *connect.Client[text, text], value string, header ...string) (string, error) {
	req := connect.NewRequest(wrapperspb.String(value))
	for i := 0; i+1 < len(header); i += 2 {
		req.Header().Add(header[i], header[i+1])
	}
	resp, err := c.CallUnary(ctx, req)
	if err != nil {
		return "", err
	}
	return resp.Msg.GetValue(), nil
}

// name returns the name of the lock that ctx carries.
func name(ctx context.Context) string {
	if l, ok := zklock.FromContext(ctx); ok {
		return l.Name()
	}
	return "no lock"
}

// named is a handler of pay that returns the name of the lock that it holds.
func named(ctx context.Context, _ *text) (*text, error) { return wrapperspb.String(name(ctx)), nil }

// fixed picks one mutex for all calls.
func fixed(c *zklock.Client) connectlock.Pick {
	return func(context.Context, connectlock.Call) zklock.Acquirer { return c.Mutex("orders/42") }
}

// elsewhere acquires the mutex that fixed picks with another client, until the test has ended or
// release is called.
func elsewhere(t *testing.T, e *memdriver.Ensemble) (release func()) {
	t.Helper()
	other, err := zklock.OpenConnector(e.Connector())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	l, err := other.Mutex("orders/42").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := l.Release(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// wantFree checks that the mutex that fixed picks is free, or becomes so at once.
func wantFree(t *testing.T, e *memdriver.Ensemble) {
	t.Helper()
	other, err := zklock.OpenConnector(e.Connector())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	l, err := other.Mutex("orders/42").Acquire(t.Context(), zklock.WithWait(10*time.Second))
	if err != nil {
		t.Errorf("the lock was not given back: %v", err)
		return
	}
	_ = l.Release(t.Context())
}

// wantTaken checks that the mutex that fixed picks is held.
func wantTaken(t *testing.T, e *memdriver.Ensemble) {
	t.Helper()
	other, err := zklock.OpenConnector(e.Connector())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if l, err := other.Mutex("orders/42").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
		t.Errorf("the lock is not held: %v, %v", l, err)
	}
}

// wantError checks an error as the caller gets it: it must not contain names.
func wantError(t *testing.T, err error, code connect.Code, reason string) {
	t.Helper()
	if err == nil || connect.CodeOf(err) != code || connectlock.Reason(err) != reason {
		t.Errorf("error %v with reason %q, want %v with reason %q", err, connectlock.Reason(err), code, reason)
		return
	}
	for _, secret := range []string{"orders", "42", "127.0.0.1", "session 0x", "lock-"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error contains %q: %v", secret, err)
		}
	}
}

var eventually = wait.Until
