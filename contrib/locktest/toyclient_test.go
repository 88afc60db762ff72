package locktest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/worker"
)

// toyClient is the client of the toy. It implements worker.Library.
type toyClient struct {
	addr    string
	ttl     time.Duration
	victims int // how many waits of a circle fail
	extra   int // permits that it adds to those that there are
	end     context.CancelFunc
	done    sync.WaitGroup

	mu      sync.Mutex
	session *lease
	ids     int
	calls   map[int]*toyCall
	conn    net.Conn
	out     *json.Encoder
}

// lease is a session, as its client sees it.
type lease struct {
	id    string
	lost  chan struct{} // closed at its end
	ended bool
	until time.Time // from then on, the server may have ended it
}

// toyCall is a request that has no answer yet.
type toyCall struct {
	toyRequest
	sent  time.Time
	reply chan toyReply
}

var (
	errGone     = errors.New("the session has ended")
	errDeadlock = errors.New("deadlock")
)

func openToy(_ context.Context, s worker.Settings) (worker.Library, error) {
	ctx, end := context.WithCancel(context.Background())
	c := &toyClient{addr: s.Servers[0], ttl: s.TTL, end: end, calls: make(map[int]*toyCall)}
	c.begin()
	c.done.Go(func() { c.connect(ctx) })
	c.done.Go(func() { c.tick(ctx) })
	return c, nil
}

func (c *toyClient) Close() error {
	c.end()
	c.mu.Lock()
	if c.conn != nil {
		c.conn.Close()
	}
	c.endSession()
	c.mu.Unlock()
	c.done.Wait()
	return nil
}

// begin begins a session. Its caller holds mu, or is alone.
func (c *toyClient) begin() {
	c.session = &lease{id: fmt.Sprintf("%x", rand.Uint64()), lost: make(chan struct{}), until: time.Now().Add(c.ttl)}
	c.send(toyRequest{Op: "open"})
}

// endSession ends the session and all its calls. Its caller holds mu.
func (c *toyClient) endSession() {
	c.session.ended = true
	close(c.session.lost)
	for id, call := range c.calls {
		delete(c.calls, id)
		if call.reply != nil {
			close(call.reply)
		}
	}
	c.session = &lease{lost: make(chan struct{}), ended: true}
}

// send sends a request, now or when there is a connection. Its caller holds mu, or is alone.
func (c *toyClient) send(r toyRequest) *toyCall {
	c.ids++
	r.Session, r.ID = c.session.id, c.ids
	call := &toyCall{toyRequest: r, sent: time.Now()}
	if r.Op == "lock" || r.Op == "unlock" {
		call.reply = make(chan toyReply, 1)
	}
	c.calls[c.ids] = call
	if c.out != nil {
		_ = c.out.Encode(call.toyRequest) // sent again with the next connection
	}
	return call
}

// connect keeps a connection and reads replies.
func (c *toyClient) connect(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", c.addr)
		if err != nil {
			select {
			case <-time.After(min(c.ttl/20, 20*time.Millisecond)): // the server may just be starting
			case <-ctx.Done():
			}
			continue
		}
		c.mu.Lock()
		c.conn, c.out = conn, json.NewEncoder(conn)
		for id := range c.ids + 1 {
			if call := c.calls[id]; call != nil {
				call.sent = time.Now()
				_ = c.out.Encode(call.toyRequest)
			}
		}
		c.mu.Unlock()
		for in := json.NewDecoder(conn); ctx.Err() == nil; {
			var r toyReply
			if in.Decode(&r) != nil {
				break
			}
			c.receive(r)
		}
		conn.Close()
	}
}

func (c *toyClient) receive(r toyReply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[r.ID]
	if call == nil || r.Session != c.session.id {
		return
	}
	if r.Op == "gone" {
		c.endSession()
		c.begin()
		return
	}
	delete(c.calls, r.ID)
	if until := call.sent.Add(c.ttl); until.After(c.session.until) && call.Op != "lock" {
		c.session.until = until
	}
	if call.reply != nil {
		call.reply <- r
	}
}

// tick sends pings, and ends a session whose time is over.
func (c *toyClient) tick(ctx context.Context) {
	ticker := time.NewTicker(c.ttl / 10)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		c.mu.Lock()
		if !time.Now().Before(c.session.until) {
			c.endSession()
			c.begin()
		} else {
			c.send(toyRequest{Op: "ping"})
		}
		c.mu.Unlock()
	}
}

// Acquire queues until the lock is granted, in one session after the other.
func (c *toyClient) Acquire(ctx context.Context, name string) (worker.Hold, error) {
	var holding []int
	for _, h := range worker.Holding(ctx) {
		holding = append(holding, toyHoldOf(h).call.ID)
	}
	asked := worker.Request(ctx)
	for ctx.Err() == nil {
		c.mu.Lock()
		session, call := c.session, (*toyCall)(nil)
		if !session.ended {
			call = c.send(toyRequest{Op: "lock", Name: name, Holding: holding, Victims: c.victims, Shared: asked.Shared, Permits: asked.Permits + c.extra})
		}
		c.mu.Unlock()
		if call == nil {
			return nil, errGone
		}
		select {
		case r, ok := <-call.reply:
			if r.Op == "deadlock" {
				return nil, errDeadlock
			}
			if ok {
				return &toyHold{c, session, call, r.Token}, nil
			}
		case <-ctx.Done():
		}
	}
	return nil, context.Cause(ctx)
}

type toyHold struct {
	client  *toyClient
	session *lease
	call    *toyCall
	token   int64
}

func (h *toyHold) Token() string         { return strconv.FormatInt(h.token, 10) }
func (h *toyHold) Lost() <-chan struct{} { return h.session.lost }

func (h *toyHold) Held() bool {
	h.client.mu.Lock()
	defer h.client.mu.Unlock()
	return !h.session.ended && time.Now().Before(h.session.until)
}

func (h *toyHold) Release(ctx context.Context) error {
	c := h.client
	c.mu.Lock()
	if h.session.ended {
		c.mu.Unlock()
		return errGone
	}
	call := &toyCall{toyRequest: h.call.toyRequest, sent: time.Now(), reply: make(chan toyReply, 1)}
	call.Op = "unlock"
	c.calls[call.ID] = call
	if c.out != nil {
		_ = c.out.Encode(call.toyRequest)
	}
	c.mu.Unlock()
	select {
	case _, ok := <-call.reply:
		if !ok {
			return errGone
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
