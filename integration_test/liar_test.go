package integration_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	serving "github.com/zklock/go-zklock/contrib/locktest/worker"
	"github.com/zklock/go-zklock/zklock"
)

// The lies of a liar.
const (
	honest  = ""
	tooSoon = "a grant one place too early"
	tooOld  = "a token that is one too small"
	tooLate = "a renewal that counts from its reply"
)

// liarRoot is the znode of the names.
const liarRoot = "/liar"

// liarTask is what a liar does.
type liarTask struct {
	Lie    string
	Longer float64
}

// liar is a lock library: ephemeral sequential znodes, and a lease that a write renews six times a session timeout.
type liar struct {
	liarTask
	conn    *zk.Conn
	timeout time.Duration
	life    context.Context
	end     context.CancelFunc
	renewer sync.WaitGroup

	mu      sync.Mutex
	session int64     // guarded by mu
	until   time.Time // the end of the lease of that session; guarded by mu
}

func openLiar(k *liarTask) func(context.Context, serving.Settings) (serving.Library, error) {
	return func(ctx context.Context, s serving.Settings) (serving.Library, error) {
		conn, _, err := zk.Connect(s.Servers, s.TTL, zk.WithLogInfo(false), zk.WithLogger(silent{}))
		if err != nil {
			return nil, err
		}
		l := &liar{liarTask: *k, conn: conn, timeout: s.TTL}
		l.life, l.end = context.WithCancel(context.Background())
		l.renewer.Go(l.renew)
		return l, nil
	}
}

// renew renews the lease until the end.
func (l *liar) renew() {
	for l.life.Err() == nil {
		sent := time.Now()
		if _, err := l.conn.Set(liarRoot, nil, -1); err == nil {
			if l.Lie == tooLate {
				sent = time.Now()
			}
			l.mu.Lock()
			l.session, l.until = l.conn.SessionID(), sent.Add(time.Duration((1+l.Longer)*float64(l.timeout)))
			l.mu.Unlock()
		}
		select {
		case <-l.life.Done():
		case <-time.After(l.timeout / 6):
		}
	}
}

// believes reports whether the lease of a session lasts.
func (l *liar) believes(session int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session == session && time.Now().Before(l.until)
}

func (l *liar) Acquire(ctx context.Context, name string) (serving.Hold, error) {
	node, err := l.conn.Create(path.Join(liarRoot, name)+"/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		return nil, err
	}
	_, st, err := l.conn.Exists(node)
	if err != nil {
		return nil, err
	}
	ahead := 0
	if l.Lie == tooSoon {
		ahead = 1
	}
	for {
		session := l.conn.SessionID()
		queue, _, changed, err := l.conn.ChildrenW(path.Dir(node))
		if err != nil {
			return nil, err
		}
		slices.Sort(queue)
		i := slices.Index(queue, path.Base(node))
		if i < 0 || session != st.EphemeralOwner {
			return nil, fmt.Errorf("the znode %s is gone", node)
		}
		if i <= ahead && l.believes(session) {
			return &liarHold{l, node, session, st.Czxid}, nil
		}
		select {
		case <-changed:
		case <-time.After(l.timeout / 6):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (l *liar) Close() error {
	l.end()
	l.conn.Close()
	l.renewer.Wait()
	return nil
}

type liarHold struct {
	liar    *liar
	node    string
	session int64
	zxid    int64
}

func (h *liarHold) Token() string {
	zxid := h.zxid
	if h.liar.Lie == tooOld {
		zxid--
	}
	return zklock.Token{Zxid: zxid}.String()
}

func (h *liarHold) Held() bool            { return h.liar.believes(h.session) }
func (h *liarHold) Lost() <-chan struct{} { return nil }

func (h *liarHold) Release(context.Context) error {
	if err := h.liar.conn.Delete(h.node, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return nil
}
