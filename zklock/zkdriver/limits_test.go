package zkdriver_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// giant answers a request with the header of a reply that is longer than any that the driver
// keeps, and with as much of its body.
func (l *link) giant(r req, body int) {
	const length = 64<<20 + 1000
	b := binary.BigEndian.AppendUint32(nil, length)
	b = binary.BigEndian.AppendUint32(b, uint32(r.xid))
	b = append(b, make([]byte, 12)...)
	_, _ = l.Write(b)
	for rest, chunk := min(body, length-16), make([]byte, 1<<20); rest > 0; rest -= len(chunk) {
		chunk = chunk[:min(rest, len(chunk))]
		if _, err := l.Write(chunk); err != nil {
			return
		}
	}
}

// A reply that is too long to be kept fails its own request only. The error is definite: the
// same request would get the same reply. That of a write says that the outcome is unknown.
func TestRepliesThatAreTooLong(t *testing.T) {
	const whole = 1 << 30
	calls := map[string]func(context.Context, driver.Session) error{
		"get":      func(ctx context.Context, s driver.Session) error { _, err := s.Get(ctx, "/a"); return err },
		"children": func(ctx context.Context, s driver.Session) error { _, _, err := s.Children(ctx, "/a"); return err },
		"watch children": func(ctx context.Context, s driver.Session) error {
			_, _, _, err := s.WatchChildren(ctx, "/a")
			return err
		},
		"set": func(ctx context.Context, s driver.Session) error {
			_, err := s.Set(ctx, "/a", nil, driver.AnyVersion)
			return err
		},
	}
	for name, c := range map[string]struct {
		call  string
		body  int // bytes, before the connection breaks
		wants error
		conns int
	}{
		"list":                   {"children", whole, driver.ErrReplyTooLarge, 1},
		"list with a watch":      {"watch children", whole, driver.ErrReplyTooLarge, 1},
		"data":                   {"get", whole, driver.ErrReplyTooLarge, 1},
		"list that is cut short": {"children", 100, driver.ErrReplyTooLarge, 2},
		"reply to a write":       {"set", whole, driver.ErrConnLoss, 2},
		"reply to no request":    {"", 0, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, func(l *link) {
				l.timeout = time.Minute // a reply that is read in part when two thirds are over breaks the connection
				l.greet(sid)
				for {
					r, ok := l.read()
					if !ok {
						return
					}
					if l.n > 1 || r.op == opSync && c.call != "" {
						l.succeed(r)
						continue
					}
					if c.call == "" {
						r.xid += 1000
					}
					if l.giant(r, c.body); c.body < whole {
						return
					}
				}
			})
			s := connect(t, p.url())
			if c.call == "" {
				matches(t, s.Sync(within(t, 5*time.Second), "/"), driver.ErrConnLoss)
			} else {
				matches(t, calls[c.call](within(t, time.Minute), s), c.wants)
			}
			if err := s.Sync(within(t, 5*time.Second), "/"); err != nil {
				t.Errorf("the next request: %v", err)
			}
			if n := p.accepted(); n != c.conns {
				t.Errorf("%d connections, want %d", n, c.conns)
			}
		})
	}
}

// The leader does not know the local session of another server, and answers that it has
// expired. A plain create, which the session's own server answers, shows whether that is so.
func TestTransactionOfALocalSession(t *testing.T) {
	const expired, local, noNode = -112, -120, -101
	ops := []driver.Op{driver.CheckOp("/a", 0), driver.CreateOp("/a/n-", nil, driver.EphemeralSequential, driver.OpenACL(driver.PermAll))}
	for name, c := range map[string]struct {
		code  int32 // of the plain create
		wants error
		over  bool
	}{
		"local":   {local, driver.ErrLocalSession, false},
		"expired": {expired, driver.ErrSessionExpired, true},
		"neither": {noNode, driver.ErrSessionExpired, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, func(l *link) {
				l.greet(sid)
				for {
					r, ok := l.read()
					switch {
					case !ok:
						return
					case r.op == opMulti:
						var answer []byte
						for _, code := range []int32{0, expired} {
							answer = binary.BigEndian.AppendUint32(append(answer, multiHeader(-1, false)...), uint32(code))
						}
						l.reply(r, 0, append(answer, multiHeader(-1, true)...))
					case r.op == opCreate:
						l.reply(r, c.code, nil)
					default:
						l.succeed(r)
					}
				}
			})
			s := connect(t, p.url())
			results, err := s.Multi(within(t, 5*time.Second), ops)
			matches(t, err, c.wants)
			if len(results) != len(ops) {
				t.Fatalf("%d results", len(results))
			}
			matches(t, results[1].Err, c.wants)
			if both := errors.Is(err, driver.ErrLocalSession) && errors.Is(err, driver.ErrSessionExpired); both {
				t.Errorf("%v matches two errors", err)
			}
			if state, _ := s.State(); (state == driver.Expired) != c.over {
				t.Errorf("the session is %v", state)
			}
		})
	}
}
