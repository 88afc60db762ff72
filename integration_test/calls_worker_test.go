package integration_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/examples/grpc/orderspb"
	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// callReport is a report of a service about an acquisition.
type callReport struct {
	Addr string // of ready: the address of the service
	Name string // the lock
	Kind string // waiting; acquired; deadlock: in a circle of waits; caller: its caller has the lock; or how else it failed
}

// chain is a call that goes through services, one after the other. Each acquires its lock by its adapter, and
// holds it while it calls the next. A chain travels with each of its calls.
type chain struct {
	Hops     []hop
	Soon     bool // services look for deadlocks soon; else never in a test
	Stranger bool // no service proves to the next that it may be trusted
	Own      bool // services send their own locks only, without those of their callers
}

type hop struct {
	Addr string
	GRPC bool
	Lock string
	Gate bool // it calls the next service when the test opens a gate
}

// secret is what services prove their identity with.
const secret = "Bearer services"

const (
	chainKey  = "chain"
	secretKey = "authorization"
)

func (c chain) text() string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func chainOf(text string) (c chain) {
	_ = json.Unmarshal([]byte(text), &c) // the test makes no other text
	return c
}

// answer is the answer of the service whose acquisition failed. Its callers pass it on.
type answer struct{ text string }

func (a answer) Error() string { return a.text }

// caller calls services.
type caller struct {
	http http.Client
	dial func(addr string) (*grpc.ClientConn, error)
}

func newCaller() *caller {
	sends := interceptors.UnaryClientInterceptor(interceptors.PassThrough, interceptors.WithSequencers())
	return &caller{
		http: http.Client{Transport: &middleware.Transport{Base: &http.Transport{DisableKeepAlives: true}}},
		dial: func(addr string) (*grpc.ClientConn, error) {
			return grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUnaryInterceptor(sends))
		},
	}
}

// call calls the first service of a chain. sequencers are those of its callers.
func (c *caller) call(ctx context.Context, k chain, sequencers []string) error {
	if k.Hops[0].GRPC {
		return c.callGRPC(ctx, k, sequencers)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+k.Hops[0].Addr+"/", nil)
	if err != nil {
		return err
	}
	r.Header.Set(chainKey, k.text())
	if !k.Stranger {
		r.Header.Set(secretKey, secret)
	}
	for _, s := range sequencers {
		r.Header.Add(fence.Key, s)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil || resp.StatusCode == http.StatusOK:
		return err
	case resp.StatusCode == http.StatusBadGateway:
		return answer{strings.TrimSpace(string(body))}
	}
	var problem struct{ Reason string }
	_ = json.Unmarshal(body, &problem) // the reason is "" then
	return answer{fmt.Sprint(resp.StatusCode, " ", problem.Reason)}
}

func (c *caller) callGRPC(ctx context.Context, k chain, sequencers []string) error {
	conn, err := c.dial(k.Hops[0].Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx = metadata.AppendToOutgoingContext(ctx, chainKey, k.text())
	if !k.Stranger {
		ctx = metadata.AppendToOutgoingContext(ctx, secretKey, secret)
	}
	for _, s := range sequencers {
		ctx = metadata.AppendToOutgoingContext(ctx, fence.Key, s)
	}
	_, err = orderspb.NewOrdersClient(conn).Pay(ctx, &orderspb.PayRequest{})
	switch s := status.Convert(err); {
	case err == nil:
		return nil
	case s.Code() == codes.FailedPrecondition:
		return answer{s.Message()}
	default:
		return answer{strings.TrimSpace(s.Code().String() + " " + interceptors.Reason(err))}
	}
}

// service is a worker that serves calls of chains, by HTTP or by gRPC.
type service struct {
	orderspb.UnimplementedOrdersServer
	*caller
	clients map[bool]*zklock.Client // by chain.Soon
	gate    chan struct{}
}

// next calls the next service of a chain, with the locks of the caller.
func (s *service) next(ctx context.Context, k chain, sequencers []string) error {
	if k.Hops[0].Gate {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if len(k.Hops) == 1 {
		return nil
	}
	if k.Own {
		sequencers = nil
	}
	k.Hops = k.Hops[1:]
	return s.call(ctx, k, sequencers)
}

// Pay implements orderspb.OrdersServer.
func (s *service) Pay(ctx context.Context, _ *orderspb.PayRequest) (*orderspb.Receipt, error) {
	if err := s.next(ctx, incoming(ctx), metadata.ValueFromIncomingContext(ctx, fence.Key)); err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	return &orderspb.Receipt{}, nil
}

// ServeHTTP implements http.Handler.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.next(r.Context(), chainOf(r.Header.Get(chainKey)), r.Header.Values(fence.Key)); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

// incoming returns the chain of a call.
func incoming(ctx context.Context) chain {
	return chainOf(strings.Join(metadata.ValueFromIncomingContext(ctx, chainKey), ""))
}

// wanted returns the lock of a call.
func (s *service) wanted(k chain) zklock.Acquirer { return s.clients[k.Soon].Mutex(k.Hops[0].Lock) }

// serve serves until the test closes the worker's standard input. Each line opens the gate once.
func (w *worker) serve() error {
	s := &service{caller: newCaller(), clients: make(map[bool]*zklock.Client), gate: make(chan struct{})}
	for soon, url := range map[bool]string{false: w.task.URLs[0], true: w.task.URLs[1]} {
		c, err := zklock.Open(url, zklock.WithHooks(w.callHooks()))
		if err != nil {
			return err
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err = c.Ping(ctx)
		if cancel(); err != nil {
			return err
		}
		s.clients[soon] = c
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	var stop func()
	if w.task.Name == "grpc" {
		pick := func(ctx context.Context, _ interceptors.Call) zklock.Acquirer { return s.wanted(incoming(ctx)) }
		trust := func(ctx context.Context, _ interceptors.Call) bool {
			return strings.Join(metadata.ValueFromIncomingContext(ctx, secretKey), "") == secret
		}
		server := grpc.NewServer(grpc.UnaryInterceptor(interceptors.UnaryServerInterceptor(pick, interceptors.WithWait(patience), interceptors.WithCallerLocks(trust))))
		orderspb.RegisterOrdersServer(server, s)
		stop = server.Stop
		go func() { served <- server.Serve(l) }()
	} else {
		pick := func(r *http.Request) zklock.Acquirer { return s.wanted(chainOf(r.Header.Get(chainKey))) }
		trust := func(r *http.Request) bool { return r.Header.Get(secretKey) == secret }
		server := &http.Server{Handler: middleware.New(pick, middleware.WithWait(patience), middleware.WithCallerLocks(trust))(s), ReadHeaderTimeout: patience}
		stop = func() { _ = server.Close() }
		go func() { served <- server.Serve(l) }()
	}
	w.print(report{What: "ready", Call: &callReport{Addr: l.Addr().String()}})
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		select {
		case s.gate <- struct{}{}:
		case <-time.After(patience):
			return errors.New("no call waits at the gate")
		}
	}
	stop()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// callHooks report what becomes of acquisitions.
func (w *worker) callHooks() zklock.Hooks {
	tell := func(name, kind string, err error) {
		r := report{What: "call", Call: &callReport{Name: name, Kind: kind}}
		if err != nil {
			r.Err = err.Error()
		}
		w.print(r)
	}
	return zklock.Hooks{
		Wait: func(ctx context.Context, e zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
			tell(e.Name, "waiting", nil)
			return ctx, nil
		},
		Acquire: func(ctx context.Context, e zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
			return ctx, func(r zklock.AcquireResult) {
				kind := "failed"
				switch {
				case r.Err == nil:
					kind = "acquired"
				case errors.As(r.Err, new(*zklock.DeadlockError)):
					kind = "deadlock"
				case errors.Is(r.Err, zklock.ErrDeadlock):
					kind = "caller"
				case errors.Is(r.Err, context.Canceled):
					kind = "cancelled"
				}
				tell(e.Name, kind, r.Err)
			}
		},
	}
}
