package connectlock_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// A server that cannot answer a call any longer has to refuse it before that, whatever the call waits for: each
// case says how, and after how long. Each kind of call is limited.
func TestWaitEndsBeforeTheServersWriteTimeout(t *testing.T) {
	for _, c := range []struct {
		what    string
		timeout time.Duration // its WriteTimeout
		opts    []connectlock.Option
		nested  bool // another lock is outside, which the call gets after half a second
		outage  bool
		code    connect.Code // 0: the call is served
		reason  string
		after   time.Duration
	}{
		{what: "another holder", timeout: time.Second, code: connect.CodeAborted, reason: connectlock.ReasonContended, after: 900 * time.Millisecond},
		{what: "a long one", timeout: time.Minute, after: 3 * time.Second},
		{what: "none", after: 3 * time.Second},
		{what: "another one of the interceptor", timeout: time.Minute, opts: []connectlock.Option{connectlock.WithWriteTimeout(time.Second)},
			code: connect.CodeAborted, reason: connectlock.ReasonContended, after: 900 * time.Millisecond},
		{what: "a lock inside a lock", timeout: time.Second, nested: true, code: connect.CodeAborted, reason: connectlock.ReasonContended, after: 900 * time.Millisecond},
		{what: "an outage", timeout: time.Second, outage: true, code: connect.CodeUnavailable, reason: connectlock.ReasonUnavailable, after: 900 * time.Millisecond},
		{what: "an outage, and a try", timeout: time.Second, outage: true, opts: []connectlock.Option{connectlock.WithWait(0)},
			code: connect.CodeUnavailable, reason: connectlock.ReasonUnavailable, after: 900 * time.Millisecond},
		{what: "a try", timeout: time.Second, opts: []connectlock.Option{connectlock.WithWait(0)}, code: connect.CodeAborted, reason: connectlock.ReasonContended},
	} {
		for kind, first := range map[string]bool{"unary": false, "stream": false, "stream by its first message": true} {
			t.Run(c.what+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := memdriver.New()
					client, err := zklock.OpenConnector(e.Connector())
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = client.Close() })
					release := elsewhere(t, e)
					if c.outage {
						release()
						e.Partition(memdriver.AroundClients(0).Reset())
						t.Cleanup(func() { e.Heal() })
					} else {
						time.AfterFunc(3*time.Second, release)
					}
					served := false
					s := shop{
						pay: func(context.Context, *text) (*text, error) { served = true; return wrapperspb.String(""), nil },
						watch: func(context.Context, *text, *connect.ServerStream[text]) error {
							served = true
							return nil
						},
					}
					opts := c.opts
					if first {
						opts = append(opts[:len(opts):len(opts)], connectlock.WithFirstMessage())
					}
					lock := connectlock.HandlerInterceptor(fixed(client), opts...)
					if c.nested {
						lock = chain{connectlock.HandlerInterceptor(outside(t, client)), lock}
					}
					web := testworld.Serve(t, &http.Server{Handler: handler(s, lock), WriteTimeout: c.timeout})
					start := time.Now()
					if kind == "unary" {
						_, err = call(t.Context(), connect.NewClient[text, text](web, "http://shop"+pay), "x")
					} else {
						stream, begun := connect.NewClient[text, text](web, "http://shop"+watch).CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("x")))
						if err = begun; err == nil {
							stream.Receive()
							err = stream.Err()
							_ = stream.Close()
						}
					}
					if after := time.Since(start); after != c.after {
						t.Errorf("the answer came after %v, want %v", after, c.after)
					}
					if c.code != 0 {
						wantError(t, err, c.code, c.reason)
					} else if err != nil {
						t.Error(err)
					}
					time.Sleep(4 * time.Second) // until the lock is free for the call if it still waits
					if served != (c.code == 0) {
						t.Errorf("the handler ran: %v", served)
					}
				})
			})
		}
	}
}

// outside picks a mutex that another client holds for half a second from now on.
func outside(t *testing.T, c *zklock.Client) connectlock.Pick {
	l, err := c.Mutex("outside").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(500*time.Millisecond, func() { _ = l.Release(context.Background()) })
	return func(context.Context, connectlock.Call) zklock.Acquirer { return c.Mutex("outside") }
}

// A client's wait is its own: it does not end with the time of the server that it runs in.
func TestClientsWaitHasNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		time.AfterFunc(3*time.Second, elsewhere(t, e))
		ctx := context.WithValue(t.Context(), http.ServerContextKey, &http.Server{WriteTimeout: time.Second})
		lock := connectlock.ClientInterceptor(fixed(c))
		web := testworld.Serve(t, &http.Server{Handler: handler(shop{pay: named}, nil)})
		if _, err := call(ctx, connect.NewClient[text, text](web, "http://shop"+pay, connect.WithInterceptors(lock)), "x"); err != nil {
			t.Error(err)
		}
	})
}
