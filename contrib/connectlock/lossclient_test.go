package connectlock_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// sender is a client's stream that counts what is sent, and does not look at its context.
type sender struct {
	connect.StreamingClientConn
	sent int
}

func (*sender) RequestHeader() http.Header { return make(http.Header) }
func (s *sender) Send(any) error           { s.sent++; return nil }
func (*sender) CloseRequest() error        { return nil }
func (*sender) CloseResponse() error       { return nil }

// A client's Send looks at the lock itself, and sends nothing after the loss.
func TestStreamClientSendsNothingAfterTheLoss(t *testing.T) {
	c, e := zklocktest.New(t)
	var ctx context.Context
	inner := new(sender)
	stream := connectlock.ClientInterceptor(fixed(c)).WrapStreamingClient(func(late context.Context, _ connect.Spec) connect.StreamingClientConn {
		ctx = late
		return inner
	})(t.Context(), connect.Spec{IsClient: true, StreamType: connect.StreamTypeBidi})
	if err := stream.Send(wrapperspb.String("x")); err != nil {
		t.Fatal(err)
	}
	held, _ := zklock.FromContext(ctx)
	e.ExpireAll()
	<-held.Done()
	err := stream.Send(wrapperspb.String("x"))
	wantError(t, err, connect.CodeFailedPrecondition, connectlock.ReasonLost)
	if !errors.Is(err, zklock.ErrLost) || inner.sent != 1 {
		t.Errorf("%v after %d messages were sent, want ErrLost after 1", err, inner.sent)
	}
	if err := stream.CloseRequest(); err != nil {
		t.Error(err)
	}
	_ = stream.CloseResponse()
}
