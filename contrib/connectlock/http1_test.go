package connectlock_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// Over HTTP/1.1 unary calls and streams hold their locks too.
func TestHTTP1(t *testing.T) {
	c, e := zklocktest.New(t)
	address := listen(t, shop{
		pay: named,
		upload: func(ctx context.Context, s *connect.ClientStream[text]) (*text, error) {
			for s.Receive() {
				wantTaken(t, e)
			}
			return wrapperspb.String(name(ctx)), s.Err()
		},
		watch: func(ctx context.Context, _ *text, s *connect.ServerStream[text]) error {
			return s.Send(wrapperspb.String(name(ctx)))
		},
	}, connectlock.HandlerInterceptor(connectlock.ByField(c, "value", "orders/%s"), connectlock.WithFirstMessage()))
	dial := func(procedure string) *connect.Client[text, text] {
		return connect.NewClient[text, text](http.DefaultClient, address+procedure)
	}
	if got, err := call(t.Context(), dial(pay), "42"); got != "orders/42" || err != nil {
		t.Errorf("pay: %q, %v", got, err)
	}
	up := dial(upload).CallClientStream(t.Context())
	if err := up.Send(wrapperspb.String("42")); err != nil {
		t.Fatal(err)
	}
	if m, err := up.CloseAndReceive(); err != nil || m.Msg.GetValue() != "orders/42" {
		t.Errorf("upload: %v, %v", m, err)
	}
	down, err := dial(watch).CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("42")))
	if err != nil || !down.Receive() || down.Msg().GetValue() != "orders/42" {
		t.Errorf("watch: %v, %v", down, err)
	}
	_ = down.Close()
	wantFree(t, e)
}

// Over HTTP/1.1, after a loss, a stream's handler and its lock end at once. The response waits
// until the client has ended its request.
func TestHTTP1StreamLost(t *testing.T) {
	for what, opts := range starts {
		t.Run(what, func(t *testing.T) {
			c, e := zklocktest.New(t)
			returned := make(chan struct{})
			address := listen(t, shop{upload: func(_ context.Context, s *connect.ClientStream[text]) (*text, error) {
				defer close(returned)
				if !s.Receive() {
					t.Error(s.Err())
				}
				go e.ExpireAll()
				if s.Receive() || !errors.Is(s.Err(), zklock.ErrLost) {
					t.Errorf("Receive: %v, want the loss", s.Err())
				}
				return wrapperspb.String("done"), nil
			}}, connectlock.HandlerInterceptor(fixed(c), opts...))

			body, request := io.Pipe()
			response := post(t, address, body)
			if _, err := io.WriteString(request, message); err != nil {
				t.Fatal(err)
			}
			<-returned
			wantFree(t, e)
			if len(response) != 0 {
				t.Errorf("the response has ended before the request: %q", <-response)
			}
			if err := request.Close(); err != nil {
				t.Fatal(err)
			}
			if got := <-response; !strings.Contains(got, `"code":"failed_precondition"`) {
				t.Errorf("the response is %q, want an error with the code failed_precondition", got)
			}
		})
	}
}
