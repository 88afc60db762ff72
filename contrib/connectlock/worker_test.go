package connectlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/internal/testkit/fleet"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

func TestMain(m *testing.M) {
	os.Exit(fleet.Main(m, map[string]fleet.Role{"serve": serveProcess, "call": callProcess, "suspend": suspendProcess}))
}

// serveProcess is a process whose handlers run under a lock.
func serveProcess(m *fleet.Member) error {
	client, err := zklock.Open(m.Args[0])
	if err != nil {
		return err
	}
	defer client.Close()
	lock := connectlock.HandlerInterceptor(connectlock.ByField(client, "value", "orders/%s"), connectlock.WithFirstMessage())
	m.Say("ready", start(waiting(m), lock).URL)
	select {} // until the test kills the process
}

// callProcess is a process that makes one call under a lock. The server, its own, does not lock.
func callProcess(m *fleet.Member) error {
	client, err := zklock.Open(m.Args[0])
	if err != nil {
		return err
	}
	defer client.Close()
	lock := connectlock.ClientInterceptor(connectlock.ByField(client, "value", "orders/%s"))
	shop, _ := dial(start(waiting(m), nil).URL, connect.WithInterceptors(lock))
	more := make(chan struct{})
	m.Say("ready")
	if _, err := m.Await(); err != nil {
		return err
	}
	if m.Args[1] == chat {
		go func() {
			if _, err := m.Await(); err == nil {
				close(more)
			}
		}()
	}
	if err = order(context.Background(), shop, m.Args[1], more); err == nil {
		m.Say("ended", "well")
	} else {
		m.Say("ended", fmt.Sprintf("%v, %s, lost: %v", connect.CodeOf(err), connectlock.Reason(err), errors.Is(err, zklock.ErrLost)))
	}
	select {} // until the test kills the process
}

// waiting returns a shop whose handlers wait for a line, and that of chat for a second message.
func waiting(m *fleet.Member) shop {
	work := func(ctx context.Context) (*text, error) {
		m.Say("began", name(ctx))
		_, err := m.AwaitIn(ctx)
		return wrapperspb.String("done"), err
	}
	return shop{
		pay: func(ctx context.Context, _ *text) (*text, error) { return work(ctx) },
		upload: func(ctx context.Context, s *connect.ClientStream[text]) (*text, error) {
			if !s.Receive() {
				return nil, s.Err()
			}
			return work(ctx)
		},
		watch: func(ctx context.Context, _ *text, s *connect.ServerStream[text]) error {
			done, err := work(ctx)
			if err != nil {
				return err
			}
			return s.Send(done)
		},
		chat: func(ctx context.Context, s *connect.BidiStream[text, text]) error {
			if _, err := s.Receive(); err != nil {
				return err
			}
			m.Say("began", name(ctx))
			second, err := s.Receive()
			if err != nil {
				m.Say("cancelled", err.Error())
				return err
			}
			return s.Send(second)
		},
	}
}

// order makes a call about order 42, and returns its error. The second message of chat waits for
// more.
func order(ctx context.Context, s site, procedure string, more <-chan struct{}) error {
	what := wrapperspb.String("42")
	switch procedure {
	case pay:
		_, err := s.pay.CallUnary(ctx, connect.NewRequest(what))
		return err
	case upload:
		up := s.upload.CallClientStream(ctx)
		_ = up.Send(what) // CloseAndReceive has the error
		_, err := up.CloseAndReceive()
		return err
	case watch:
		down, err := s.watch.CallServerStream(ctx, connect.NewRequest(what))
		if err != nil {
			return err
		}
		defer down.Close()
		for down.Receive() {
		}
		return down.Err()
	}
	both := s.chat.CallBidiStream(ctx)
	if err := both.Send(what); err != nil {
		return err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-more:
			_ = both.Send(what) // Receive has the error
		case <-ended:
		}
	}()
	_, err := both.Receive()
	_, _ = both.CloseRequest(), both.CloseResponse()
	return err
}
