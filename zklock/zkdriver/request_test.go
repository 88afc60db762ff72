package zkdriver_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock/driver"
)

// codes makes a peer that answers each request with an error code: the last name of
// the request's path.
func codes(t *testing.T) *peer {
	return newPeer(t, func(l *link) {
		l.greet(sid)
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			if code, err := strconv.Atoi(strings.TrimPrefix(r.path(), "/")); err == nil {
				l.reply(r, int32(code), nil)
				continue
			}
			l.succeed(r)
		}
	})
}

func TestErrorsOfServers(t *testing.T) {
	s := connect(t, codes(t).url())
	all := []error{
		driver.ErrConnLoss, driver.ErrNotSent, driver.ErrNoNode, driver.ErrNodeExists, driver.ErrNotEmpty,
		driver.ErrBadVersion, driver.ErrNoChildrenForEphemerals, driver.ErrNoAuth, driver.ErrAuthFailed,
		driver.ErrInvalidACL, driver.ErrBadArguments, driver.ErrUnimplemented, driver.ErrThrottled,
		driver.ErrQuotaExceeded, driver.ErrLocalSession, driver.ErrSessionExpired, driver.ErrClosed,
	}
	for code, want := range map[int]struct{ name, native error }{
		-1:   {nil, nil},
		-2:   {nil, nil},
		-4:   {driver.ErrConnLoss, nil},
		-5:   {nil, nil},
		-6:   {driver.ErrUnimplemented, nil},
		-7:   {driver.ErrConnLoss, nil},
		-8:   {driver.ErrBadArguments, zk.ErrBadArguments},
		-100: {nil, zk.ErrAPIError},
		-101: {driver.ErrNoNode, zk.ErrNoNode},
		-102: {driver.ErrNoAuth, zk.ErrNoAuth},
		-103: {driver.ErrBadVersion, zk.ErrBadVersion},
		-108: {driver.ErrNoChildrenForEphemerals, zk.ErrNoChildrenForEphemerals},
		-110: {driver.ErrNodeExists, zk.ErrNodeExists},
		-111: {driver.ErrNotEmpty, zk.ErrNotEmpty},
		-114: {driver.ErrInvalidACL, zk.ErrInvalidACL},
		-115: {driver.ErrAuthFailed, zk.ErrAuthFailed},
		-116: {driver.ErrConnLoss, zk.ErrClosing},
		-118: {driver.ErrConnLoss, zk.ErrSessionMoved},
		-119: {nil, nil},
		-122: {driver.ErrConnLoss, nil},
		-120: {driver.ErrLocalSession, nil},
		-124: {driver.ErrAuthFailed, nil},
		-125: {driver.ErrQuotaExceeded, nil},
		-127: {driver.ErrThrottled, nil},
		-999: {nil, nil},
	} {
		_, err := s.Get(within(t, 5*time.Second), "/"+strconv.Itoa(code))
		for _, e := range all {
			if got := errors.Is(err, e); got != (e == want.name) {
				t.Errorf("code %d: %v: matches %q: %v", code, err, e, got)
			}
		}
		if want.native != nil {
			matches(t, err, want.native)
		} else if !strings.Contains(err.Error(), strconv.Itoa(code)) {
			t.Errorf("code %d: the error %q does not contain the code", code, err)
		}
	}
	if g, _ := s.Conn(); g != 1 {
		t.Errorf("the errors have closed the connection: the present one is number %d, want 1", g)
	}
}

func TestContextThatEndsBeforeTheSend(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	release := make(chan struct{})
	p := newPeer(t, func(l *link) {
		if l.n > 1 {
			<-release // this keeps the session suspended
		}
		l.greet(sid)
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			mu.Lock()
			seen = append(seen, r.path())
			mu.Unlock()
			l.succeed(r)
		}
	})
	s := connect(t, p.url())
	p.drop()
	reach(t, s, driver.Suspended)
	const many = 50 // more than fit into the client's own queue
	done := make(chan error, many)
	ctx, cancel := context.WithCancel(context.Background())
	for range many {
		go func() { done <- s.Sync(ctx, "/given-up") }()
	}
	cancel()
	for range many {
		matches(t, recv(t, done), driver.ErrNotSent, context.Canceled)
	}
	close(release)
	generation(t, s, 2)
	if err := s.Sync(within(t, 5*time.Second), "/last"); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 1 || seen[0] != "/last" {
		t.Errorf("the server received requests for %q, want only /last", seen)
	}
}

func TestContextThatEndsAfterTheSend(t *testing.T) {
	arrived := make(chan req, 1)
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			if r.path() == "/mute" {
				arrived <- r
				continue
			}
			l.succeed(r)
		}
	})
	s := connect(t, p.url())
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Delete(ctx, "/mute", 3) }()
	recv(t, arrived)
	why := errors.New("no more patience")
	cancel(why)
	matches(t, recv(t, done), driver.ErrConnLoss, context.Canceled, why)
	if err := s.Sync(within(t, 5*time.Second), "/"); err != nil {
		t.Errorf("request after an abandoned one: %v", err)
	}
	// No caller waits for the abandoned request, so a reconnect does not wait for it.
	p.drop()
	generation(t, s, 2)
}

// If a caller abandons one request and makes another, the second one must not
// overtake the first. Otherwise the caller would look for the effect of the first one
// too early.
func TestAbandonedRequestsKeepTheirPlace(t *testing.T) {
	paths := make(chan string, 4)
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			if r.op != opClose {
				paths <- r.path()
			}
			l.succeed(r)
		}
	})
	s := connect(t, p.url())
	sent := 0
	for i := range 500 {
		first, second := fmt.Sprintf("/first-%d", i), fmt.Sprintf("/second-%d", i)
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*time.Microsecond/4)
		err := s.Sync(ctx, first)
		cancel()
		if e := s.Sync(within(t, 5*time.Second), second); e != nil {
			t.Fatal(e)
		}
		want := []string{second}
		if !errors.Is(err, driver.ErrNotSent) {
			want = []string{first, second}
			sent++
		}
		for _, w := range want {
			if got := recv(t, paths); got != w {
				t.Fatalf("the server received %s, want %s; the first request ended with %v", got, w, err)
			}
		}
	}
	t.Logf("%d of 500 abandoned requests were sent", sent)
}

func TestRefusedBeforeTheSend(t *testing.T) {
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			if r.op != opClose {
				t.Errorf("operation %d on %q was sent, want it refused", r.op, r.path())
			}
			l.succeed(r)
		}
	})
	s := connect(t, p.url())
	ctx := within(t, 5*time.Second)
	for _, path := range []string{"", "a", "/a/", "//", "/a//b", "/.", "/a/../b", "/\x00", "/\x1f", "/\x7f", "/\u0085", "/\ue000", "/\ufff0", "/\xff"} {
		_, err := s.Get(ctx, path)
		matches(t, err, driver.ErrBadArguments)
		_, err = s.Multi(ctx, []driver.Op{driver.CheckOp(path, 0)})
		matches(t, err, driver.ErrBadArguments)
	}
	_, err := s.Create(ctx, "/a", nil, driver.Mode(99), nil)
	matches(t, err, driver.ErrBadArguments)
	_, err = s.Multi(ctx, []driver.Op{driver.CreateOp("/a", nil, driver.Mode(99), nil)})
	matches(t, err, driver.ErrBadArguments)
	_, err = s.Multi(ctx, []driver.Op{{Path: "/a"}})
	matches(t, err, driver.ErrBadArguments)
	_, err = s.Set(ctx, "/a", make([]byte, 1<<20-4000), 0)
	matches(t, err, driver.ErrTooLarge)
}

// The largest request that is let through must fit into the client's buffer. The error of a larger one names the setting.
func TestLargestRequest(t *testing.T) {
	p := newPeer(t, (*link).work)
	s := connect(t, p.url())
	const overhead = 8 + 4 + len("/a") + 4 + 4
	for size, want := range map[int]error{1<<20 - 4096 - overhead: nil, 1<<20 - 4096 - overhead + 1: driver.ErrTooLarge} {
		if _, err := s.Set(within(t, 5*time.Second), "/a", make([]byte, size), 0); !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), "jute.maxbuffer") {
			t.Errorf("%d bytes: %v, want %v", size, err, want)
		}
	}
}
