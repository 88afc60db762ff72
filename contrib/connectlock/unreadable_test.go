package connectlock_test

import (
	"context"
	"errors"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// torn is a codec that encodes one value wrongly.
type torn struct{}

func (torn) Name() string { return "proto" }
func (torn) Marshal(v any) ([]byte, error) {
	if m := v.(*text); m.GetValue() != "torn" {
		return proto.Marshal(m)
	}
	return []byte{0xff}, nil
}
func (torn) Unmarshal(b []byte, v any) error { return proto.Unmarshal(b, v.(*text)) }

// A handler ignores the error of its first Receive, whose message cannot be read. The second one
// must not return a message, since nothing has picked its lock.
func TestNothingFollowsAFirstMessageThatCannotBeRead(t *testing.T) {
	for protocol, opts := range protocols {
		t.Run(protocol, func(t *testing.T) {
			c, e := zklocktest.New(t)
			sent := make(chan struct{})
			s := serve(t, shop{chat: func(_ context.Context, s *connect.BidiStream[text, text]) error {
				<-sent
				_, first := s.Receive()
				m, second := s.Receive()
				if connect.CodeOf(first) != connect.CodeInvalidArgument || second != first {
					t.Errorf("Receive: %v, and then %v, %v; want invalid_argument twice", first, m, second)
				}
				wantFree(t, e)
				return connect.NewError(connect.CodeNotFound, errors.New("no order"))
			}}, connectlock.HandlerInterceptor(fixed(c), connectlock.WithFirstMessage()), append(opts, connect.WithCodec(torn{}))...)
			talk := s.chat.CallBidiStream(t.Context())
			for _, value := range []string{"torn", "42"} {
				if err := talk.Send(wrapperspb.String(value)); err != nil {
					t.Error(err)
				}
			}
			close(sent)
			_, err := talk.Receive()
			wantError(t, err, connect.CodeNotFound, "") // the handler's
			_ = talk.CloseRequest()
			_ = talk.CloseResponse()
		})
	}
}
