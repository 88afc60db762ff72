package connectlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/fleet"
	"github.com/zklock/go-zklock/zklock"
)

// suspendProcess is a process that serves watch. Its handler sends after it has lost its lock.
func suspendProcess(m *fleet.Member) error {
	client, err := zklock.Open(m.Args[0])
	if err != nil {
		return err
	}
	defer client.Close()
	lock := connectlock.HandlerInterceptor(fixed(client))
	m.Say("serving", start(shop{watch: func(ctx context.Context, _ *text, s *connect.ServerStream[text]) error {
		held, _ := zklock.FromContext(ctx)
		m.HoldsOn(held)
		err := s.Send(wrapperspb.String("late"))
		m.Say("sent", fmt.Sprint(errors.Is(err, zklock.ErrLost)))
		return err
	}}, lock).URL)
	select {} // until the test kills the process
}

// A process that was stopped until another one got the lock sends nothing, though nothing has
// reported the loss to it yet.
func TestSendAfterSuspension(t *testing.T) {
	ensemble.Require(t)
	address := ensemble.Start(t, ensemble.Config{}).URL("/suspended", fleet.ShortSession())
	p := fleet.Start(t, "suspend", address)
	done := remote(t, p.Expect("serving"), watch, nil)
	p.Expect("holds")
	p.Suspend(address, "orders/42")
	if failed := p.Expect("sent"); failed != "true" {
		t.Error("the handler has sent a message without the lock")
	}
	wantError(t, <-done, connect.CodeFailedPrecondition, connectlock.ReasonLost)
}
