package connectlock_test

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/fleet"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
)

// party is a process that serves or makes a call under a lock.
type party struct {
	*fleet.Process
	at   string        // the URL of what the process serves; "" if the process makes the call
	more chan struct{} // lets chat continue
	done <-chan error  // gets the outcome of the test's call
}

// join starts a process.
func join(t *testing.T, role, address, procedure string) *party {
	t.Helper()
	p := &party{Process: fleet.Start(t, role, address, procedure), more: make(chan struct{})}
	if at := p.Expect("ready"); role == "serve" {
		p.at = at
	}
	return p
}

// begin begins the call.
func (p *party) begin(t *testing.T, procedure string) {
	t.Helper()
	if p.at == "" {
		p.Send("call")
		return
	}
	p.done = remote(t, p.at, procedure, p.more)
}

// remote makes a call of a process.
func remote(t *testing.T, address, procedure string, more <-chan struct{}) <-chan error {
	t.Helper()
	shop, hangUp := dial(address)
	t.Cleanup(hangUp)
	done := make(chan error, 1)
	go func() { done <- order(t.Context(), shop, procedure, more) }()
	return done
}

// finish lets the call go on, which then ends well.
func (p *party) finish(t *testing.T) {
	t.Helper()
	p.Send("go on")
	if p.at == "" {
		if got := p.Expect("ended"); got != "well" {
			t.Errorf("the call ended with %s", got)
		}
		return
	}
	close(p.more)
	if err := <-p.done; err != nil {
		t.Errorf("the call ended with %v", err)
	}
}

// wantLost checks that the loss of the lock ends the call.
func (p *party) wantLost(t *testing.T) {
	t.Helper()
	if p.at == "" {
		if got := p.Expect("ended"); got != "failed_precondition, LOCK_LOST, lost: true" {
			t.Errorf("the call ended with %s, want the loss", got)
		}
		return
	}
	if why := p.Expect("cancelled"); !strings.Contains(why, "lost") {
		t.Errorf("the handler was cancelled with %q, want the loss", why)
	}
	wantError(t, <-p.done, connect.CodeFailedPrecondition, connectlock.ReasonLost)
}

// Two processes serve the same order on a real ZooKeeper, or make calls about it: one after the
// other; one of them is killed, or loses its lock, in the middle of the call.
func TestProcesses(t *testing.T) {
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	for side, role := range map[string]string{"handler": "serve", "client": "call"} {
		for kind, procedure := range map[string]string{"unary": pay, "upload": upload, "watch": watch, "chat": chat} {
			begin := func(t *testing.T, address, other string) (first, second *party) {
				// Both processes run before the lease of a short session begins.
				first, second = join(t, role, address, procedure), join(t, role, other, procedure)
				first.begin(t, procedure)
				if held := first.Expect("began"); side == "handler" && held != "orders/42" {
					t.Errorf("the handler holds %q, want orders/42", held)
				}
				second.begin(t, procedure)
				fleet.AwaitContenders(t, other, "orders/42", 2)
				second.Silent("began")
				return first, second
			}
			root := "-" + side + "-" + kind
			t.Run(side+"/"+kind+"/one after the other", func(t *testing.T) {
				t.Parallel()
				address := e.URL("/turns"+root, nil)
				first, second := begin(t, address, address)
				first.finish(t)
				second.Expect("began")
				second.finish(t)
			})
			t.Run(side+"/"+kind+"/killed", func(t *testing.T) {
				t.Parallel()
				address := e.URL("/killed"+root, fleet.ShortSession())
				first, second := begin(t, address, address)
				first.Kill()
				if side == "handler" && <-first.done == nil {
					t.Error("the call of the process that was killed succeeded")
				}
				second.Expect("began")
				second.finish(t)
			})
			t.Run(side+"/"+kind+"/lost", func(t *testing.T) {
				t.Parallel()
				p, err := proxy.New(e.Hosts())
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				first, second := begin(t, ensemble.URL(p.Addr(), "/lost"+root, fleet.ShortSession()), e.URL("/lost"+root, fleet.ShortSession()))
				p.Stall(proxy.Both)
				first.wantLost(t)
				second.Expect("began")
				second.finish(t)
			})
		}
	}
}
