package zkdriver_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A server's replies must not crash the process, or make it wait.
func TestHostileReplies(t *testing.T) {
	huge := []byte{0x7f, 0xff, 0xff, 0xff}
	calls := map[string]func(s driver.Session, ctx context.Context) error{
		"get":      func(s driver.Session, ctx context.Context) error { _, err := s.Get(ctx, "/a"); return err },
		"children": func(s driver.Session, ctx context.Context) error { _, _, err := s.Children(ctx, "/a"); return err },
		"multi": func(s driver.Session, ctx context.Context) error {
			_, err := s.Multi(ctx, []driver.Op{driver.DeleteOp("/a", 0), driver.DeleteOp("/b", 0)})
			return err
		},
	}
	for name, c := range map[string]struct {
		call  string
		reply func(l *link, r req)
	}{
		"empty frame":     {"get", func(l *link, _ req) { l.writeFrame(nil) }},
		"short frame":     {"get", func(l *link, _ req) { l.writeFrame(make([]byte, 15)) }},
		"giant frame":     {"get", func(l *link, _ req) { _, _ = l.Write(append(huge, make([]byte, 64)...)) }},
		"giant data":      {"get", func(l *link, r req) { l.reply(r, 0, huge) }},
		"no data":         {"get", func(l *link, r req) { l.reply(r, 0, nil) }},
		"giant list":      {"children", func(l *link, r req) { l.reply(r, 0, huge) }},
		"negative list":   {"children", func(l *link, r req) { l.reply(r, 0, bytes.Repeat([]byte{0xff}, 64)) }},
		"no results":      {"multi", func(l *link, r req) { l.reply(r, 0, nil) }},
		"half a result":   {"multi", func(l *link, r req) { l.reply(r, 0, []byte{0, 0, 0, 1}) }},
		"half an error":   {"multi", func(l *link, r req) { l.reply(r, 0, []byte{255, 255, 255, 255, 0, 0, 0, 0, 0, 1}) }},
		"unknown result":  {"multi", func(l *link, r req) { l.reply(r, 0, multiHeader(77, false)) }},
		"too few results": {"multi", func(l *link, r req) { l.reply(r, 0, multiHeader(-1, true)) }},
		"too many results": {"multi", func(l *link, r req) {
			l.reply(r, 0, slicesOf(multiHeader(2, false), multiHeader(2, false), multiHeader(2, false), multiHeader(-1, true)))
		}},
		"half a container":  {"multi", func(l *link, r req) { l.reply(r, 0, slicesOf(multiHeader(15, false), str("/a"), make([]byte, 67))) }},
		"giant container":   {"multi", func(l *link, r req) { l.reply(r, 0, slicesOf(multiHeader(19, false), huge, make([]byte, 80))) }},
		"results of others": {"multi", func(l *link, r req) { l.reply(r, 0, slicesOf(multiHeader(1, false), huge)) }},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, func(l *link) {
				l.greet(sid)
				for {
					r, ok := l.read()
					if !ok {
						return
					}
					if l.n == 1 && (r.op == opGetData || r.op == opChildren || r.op == opMulti) {
						c.reply(l, r)
						continue
					}
					l.succeed(r)
				}
			})
			s := connect(t, p.url())
			ctx := within(t, atOnce)
			err := calls[c.call](s, ctx)
			matches(t, err, driver.ErrConnLoss)
			if ctx.Err() != nil {
				t.Error("the request waited for a reply until its context ended")
			}
			if err := s.Sync(within(t, 5*time.Second), "/"); err != nil {
				t.Errorf("the session no longer works: %v", err)
			}
		})
	}
}

// A server may send a frame one byte at a time, so that the frame never ends. The
// session leaves it as it leaves a server that sends nothing.
func TestDrippingServerIsLeft(t *testing.T) {
	drip := func(l *link, frame []byte) {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for i := range frame {
			if _, err := l.Write(frame[i : i+1]); err != nil {
				return
			}
			<-tick.C
		}
	}
	for what, script := range map[string]func(l *link){
		"the handshake": func(l *link) { drip(l, append([]byte{0, 0, 1, 0}, make([]byte, 256)...)) },
		"a reply": func(l *link) {
			l.timeout = 4 * time.Second
			l.greet(sid)
			if r, ok := l.read(); ok {
				frame := binary.BigEndian.AppendUint32(nil, 400)
				frame = binary.BigEndian.AppendUint32(frame, uint32(r.xid))
				drip(l, append(frame, make([]byte, 396)...))
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
				var sessions atomic.Int32
				p := virtual(n, 0, func(l *link) {
					if begin(l) != session {
						return // the session asks whether the server serves
					}
					if sessions.Add(1) == 1 {
						script(l)
						return
					}
					l.work()
				})
				s := connect(t, p.url()) // connect waits for 10s; the slow handshake would take 13s
				ctx := within(t, 10*time.Second)
				if err := s.Sync(ctx, "/"); err != nil {
					matches(t, err, driver.ErrConnLoss)
					if ctx.Err() != nil {
						t.Error("the request waited for a reply until its context ended")
					}
					generation(t, s, 2)
				}
				if n := sessions.Load(); n != 2 {
					t.Errorf("%d handshakes, want 2", n)
				}
			})
		})
	}
}

func multiHeader(kind int32, done bool) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(kind))
	if done {
		return append(b, 1, 255, 255, 255, 255)
	}
	return append(b, 0, 0, 0, 0, 0)
}

func slicesOf(b ...[]byte) []byte { return bytes.Join(b, nil) }

// A list of children may be longer than a request is allowed to be.
func TestLongReplies(t *testing.T) {
	const children = 200_000
	list := binary.BigEndian.AppendUint32(nil, children) // built before a request waits for it
	for i := range children {
		list = append(list, str(strconv.Itoa(i))...)
	}
	list = append(list, make([]byte, 68)...)
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			if r.op != opChildren {
				l.succeed(r)
				continue
			}
			l.reply(r, 0, list)
		}
	})
	s := connect(t, p.url())
	names, _, err := s.Children(within(t, 10*time.Second), "/a")
	if err != nil || len(names) != children || names[children-1] != strconv.Itoa(children-1) {
		t.Errorf("%d names, error %v", len(names), err)
	}
}

func TestMultiResults(t *testing.T) {
	var answer []byte
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			if r.op == opMulti {
				l.reply(r, 0, answer)
				continue
			}
			l.succeed(r)
		}
	})
	s := connect(t, p.url())
	ops := []driver.Op{driver.CheckOp("/a", 1), driver.DeleteOp("/b", 2), driver.SetOp("/c", nil, 3), driver.SetOp("/d", nil, 3)}
	failed := func(codes ...int32) {
		answer = nil
		for _, c := range codes {
			answer = append(answer, multiHeader(-1, false)...)
			answer = binary.BigEndian.AppendUint32(answer, uint32(c))
		}
		answer = append(answer, multiHeader(-1, true)...)
	}
	failed(0, -103, -2, -2)
	results, err := s.Multi(within(t, 5*time.Second), ops)
	matches(t, err, driver.ErrBadVersion, zk.ErrBadVersion)
	if errors.Is(err, driver.ErrRolledBack) || len(results) != len(ops) {
		t.Fatalf("error %v with %d results", err, len(results))
	}
	for i, r := range results {
		want := driver.ErrRolledBack
		if i == 1 {
			want = driver.ErrBadVersion
		}
		matches(t, r.Err, want)
		if (i == 1) == errors.Is(r.Err, driver.ErrRolledBack) {
			t.Errorf("result %d: %v", i, r.Err)
		}
	}
	failed(-999, -2, -2, -2)
	results, err = s.Multi(within(t, 5*time.Second), ops)
	if err == nil || errors.Is(err, driver.ErrConnLoss) || !strings.Contains(err.Error(), "-999") || len(results) != 4 {
		t.Errorf("unknown code: error %v with %d results", err, len(results))
	}
	failed(-2, -2, -2, -2) // no operation failed by itself, so the answer is not trusted
	if results, err = s.Multi(within(t, 5*time.Second), ops); results != nil {
		t.Errorf("results %v", results)
	}
	matches(t, err, driver.ErrConnLoss)
}

// A server's result for a container has another type than that of other creates, and a
// Stat. A transaction with containers has the same results as any other.
func TestResultsOfContainers(t *testing.T) {
	var answer []byte
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			if r.op == opMulti {
				l.replyAt(9, r, 0, answer)
				continue
			}
			l.succeed(r)
		}
	})
	s := connect(t, p.url())
	ops := []driver.Op{
		driver.CreateOp("/a", nil, driver.Container, driver.OpenACL(driver.PermAll)),
		driver.CreateOp("/a/n-", nil, driver.EphemeralSequential, driver.OpenACL(driver.PermAll)),
		driver.SetOp("/a", nil, driver.AnyVersion),
		driver.CreateOp("/b", nil, driver.Container, driver.OpenACL(driver.PermAll)),
		driver.DeleteOp("/c", driver.AnyVersion),
	}
	stat := bytes.Repeat([]byte{0, 0, 0, 1}, 68/4)
	for _, kind := range []int32{15, 19, 1} {
		made := func(path string) []byte {
			if kind == 1 {
				return slicesOf(multiHeader(kind, false), str(path))
			}
			return slicesOf(multiHeader(kind, false), str(path), stat)
		}
		answer = slicesOf(made("/a"), multiHeader(1, false), str("/a/n-7"), multiHeader(5, false), stat, made("/b"), multiHeader(2, false), multiHeader(-1, true))
		results, err := s.Multi(within(t, 5*time.Second), ops)
		if err != nil || len(results) != len(ops) {
			t.Fatalf("type %d: error %v with %d results", kind, err, len(results))
		}
		for i, path := range []string{"/a", "/a/n-7", "", "/b", ""} {
			if r := results[i]; r.Path != path || r.Err != nil || r.Zxid != 9 || (i == 2) != (r.Stat.Version == 1) {
				t.Errorf("type %d: result %d is %+v", kind, i, r)
			}
		}
	}

	// Servers without containers do not know the mode.
	answer = nil
	for _, code := range []int32{-8, -2, -2, -2, -2} {
		answer = binary.BigEndian.AppendUint32(append(answer, multiHeader(-1, false)...), uint32(code))
	}
	answer = append(answer, multiHeader(-1, true)...)
	results, err := s.Multi(within(t, 5*time.Second), ops)
	matches(t, err, driver.ErrUnimplemented, zk.ErrBadArguments)
	if len(results) != len(ops) || errors.Is(err, driver.ErrBadArguments) {
		t.Fatalf("error %v with %d results", err, len(results))
	}
	matches(t, results[0].Err, driver.ErrUnimplemented)
	for _, r := range results[1:] {
		matches(t, r.Err, driver.ErrRolledBack)
	}
}
