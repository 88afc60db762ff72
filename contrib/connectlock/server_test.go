package connectlock_test

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/integration_test/ensemble"
	"github.com/zklock/go-zklock/integration_test/fleet"
	"github.com/zklock/go-zklock/integration_test/proxy"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

func TestMain(m *testing.M) {
	os.Exit(fleet.Main(m, map[string]fleet.Role{"serve": serveProcess}))
}

// serveProcess is a process that serves pay and watch under a lock. Each call waits for a line.
func serveProcess(m *fleet.Member) error {
	client, err := zklock.Open(m.Args[0])
	if err != nil {
		return err
	}
	defer client.Close()
	work := func(ctx context.Context) (*text, error) {
		m.Say("began", name(ctx))
		line := make(chan error, 1)
		go func() { _, err := m.Await(); line <- err }()
		select {
		case err := <-line:
			return wrapperspb.String("done"), err
		case <-ctx.Done():
			m.Say("cancelled", context.Cause(ctx).Error())
			return nil, ctx.Err()
		}
	}
	lock := connect.WithInterceptors(connectlock.HandlerInterceptor(connectlock.ByField(client, "value", "orders/%s"), connectlock.WithFirstMessage()))
	mux := http.NewServeMux()
	mux.Handle(pay, connect.NewUnaryHandler(pay, func(ctx context.Context, _ *connect.Request[text]) (*connect.Response[text], error) {
		done, err := work(ctx)
		if err != nil {
			return nil, err
		}
		return connect.NewResponse(done), nil
	}, lock))
	mux.Handle(watch, connect.NewServerStreamHandler(watch, func(ctx context.Context, _ *connect.Request[text], s *connect.ServerStream[text]) error {
		done, err := work(ctx)
		if err != nil {
			return err
		}
		return s.Send(done)
	}, lock))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	m.Say("serving", "http://"+listener.Addr().String())
	return http.Serve(listener, mux) // until the test kills the process
}

// quick are settings with which a session ends soon after its client.
func quick() url.Values {
	return url.Values{"session_timeout": {"2s"}, "tick_time": {"500ms"}, "pool_max_sessions": {"1"}}
}

// remote calls a procedure of a process.
func remote(t *testing.T, address, procedure string) <-chan error {
	t.Helper()
	c := connect.NewClient[text, text](http.DefaultClient, address+procedure)
	ended := make(chan error, 1)
	go func() {
		if procedure == pay {
			_, err := c.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("42")))
			ended <- err
			return
		}
		s, err := c.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("42")))
		if err == nil {
			for s.Receive() {
			}
			err = s.Err()
			_ = s.Close()
		}
		ended <- err
	}()
	return ended
}

// Two processes serve the same order on a real ZooKeeper: one after the other; one of them is
// killed, or loses its lock, while it serves.
func TestProcesses(t *testing.T) {
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	for kind, procedure := range map[string]string{"unary": pay, "stream": watch} {
		begin := func(t *testing.T, address, other string) (first, second *fleet.Process, done [2]<-chan error) {
			first = fleet.Start(t, "serve", address)
			at := first.Expect("serving")
			second = fleet.Start(t, "serve", other)
			atSecond := second.Expect("serving")
			done[0] = remote(t, at, procedure)
			if held := first.Expect("began"); held != "orders/42" {
				t.Errorf("the handler holds %q, want orders/42", held)
			}
			done[1] = remote(t, atSecond, procedure)
			fleet.AwaitContenders(t, other, "orders/42", 2)
			second.Silent("began")
			return first, second, done
		}
		finish := func(t *testing.T, second *fleet.Process, done <-chan error) {
			t.Helper()
			second.Expect("began")
			second.Send("go on")
			if err := <-done; err != nil {
				t.Errorf("the call of the second process: %v", err)
			}
		}
		t.Run(kind+"/one after the other", func(t *testing.T) {
			address := e.URL("/turns-"+kind, quick())
			first, second, done := begin(t, address, address)
			first.Send("go on")
			if err := <-done[0]; err != nil {
				t.Errorf("the call of the first process: %v", err)
			}
			finish(t, second, done[1])
		})
		t.Run(kind+"/killed", func(t *testing.T) {
			address := e.URL("/killed-"+kind, quick())
			first, second, done := begin(t, address, address)
			first.Kill()
			if err := <-done[0]; err == nil {
				t.Error("the call of the process that was killed succeeded")
			}
			finish(t, second, done[1])
		})
		t.Run(kind+"/lost", func(t *testing.T) {
			p, err := proxy.New(e.Hosts())
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			first, second, done := begin(t, ensemble.URL(p.Addr(), "/lost-"+kind, quick()), e.URL("/lost-"+kind, quick()))
			p.Stall(proxy.Both)
			if why := first.Expect("cancelled"); !strings.Contains(why, "lost") {
				t.Errorf("the handler was cancelled with %q, want the loss", why)
			}
			wantError(t, <-done[0], connect.CodeAborted, "LOCK_LOST")
			finish(t, second, done[1])
		})
	}
}
