package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	serving "github.com/zklock/go-zklock/contrib/locktest/worker"
	"github.com/zklock/go-zklock/internal/testkit/leaks"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/election"
)

// chaosTask is the part of a task that only workers of the chaos test need.
type chaosTask struct {
	Znode   string        // the path of the register in ZooKeeper
	Timeout time.Duration // the session timeout of the control
}

// The names of the chaos test whose locks are not used like the others.
const (
	chaosZnode    = "znode"    // protects the register in ZooKeeper
	chaosElection = "election" // a term is a hold
	chaosControl  = "control-" // begins those of the trusting client
)

// chaosHosts stands for the servers' addresses in the URL of a task. Locktest gives each worker its own.
const chaosHosts = "hosts"

// unexpected begins the reason of a failure that an application need not expect.
const unexpected = "violation: "

// chaosNote is a line of a worker's journal: a write of the register in ZooKeeper, or the end.
type chaosNote struct {
	Token   zklock.Token
	Version int32  // after the write, from 1; 0: the outcome is not known
	Refused string // why the write was refused; "": it was not
	Ended   bool   // the worker has closed its client and left nothing behind
}

// chaosLibrary is zklock, and the control, as workers of the chaos test use them.
type chaosLibrary struct {
	client  *zklock.Client
	task    *chaosTask
	hosts   []string
	journal *os.File

	mu       sync.Mutex
	controls map[string]*trusting // guarded by mu
}

// openChaos opens a worker's client.
func openChaos(t task) func(context.Context, serving.Settings) (serving.Library, error) {
	return func(_ context.Context, s serving.Settings) (serving.Library, error) {
		url := strings.Replace(t.URL, chaosHosts, strings.Join(s.Servers, ","), 1)
		if slices.Contains(os.Args[1:], "keep") {
			url += "&keep=1s"
		}
		client, err := zklock.Open(url)
		if err != nil {
			return nil, err
		}
		journal, err := os.OpenFile(t.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, errors.Join(err, client.Close())
		}
		ctx, done := context.WithTimeout(context.Background(), patience)
		defer done()
		if err := client.Ping(ctx); err != nil {
			return nil, errors.Join(err, client.Close())
		}
		return &chaosLibrary{client: client, task: t.Chaos, hosts: s.Servers, journal: journal, controls: make(map[string]*trusting)}, nil
	}
}

// note writes a line of the journal, with a single write, which the end of the process does not break.
func (l *chaosLibrary) note(n chaosNote) error {
	line, err := json.Marshal(n)
	if err != nil {
		return err
	}
	_, err = l.journal.Write(append(line, '\n'))
	return err
}

// Acquire acquires what the request asks for. One acquisition in ten waits for the lock for a short time only.
func (l *chaosLibrary) Acquire(ctx context.Context, name string) (serving.Hold, error) {
	if strings.HasPrefix(name, chaosControl) {
		return l.trust(ctx, name)
	}
	if !strings.HasPrefix(name, "long-") && rand.IntN(10) == 0 {
		hasty, cancel := context.WithTimeout(ctx, time.Duration(1+rand.IntN(100))*time.Millisecond)
		defer cancel()
		ctx = hasty
	}
	var lock *zklock.Lock
	var err error
	if name != chaosElection {
		lock, err = l.acquirer(name, serving.Request(ctx)).Acquire(ctx)
	} else if term, failed := election.New(l.client, name).Campaign(ctx); failed == nil {
		lock = term.Lock
	} else {
		err = failed
	}
	if err != nil {
		return nil, notAcquired(ctx, err)
	}
	h := &chaosHold{library: l, lock: lock}
	if name == chaosZnode {
		h.first, h.err = l.txn(lock)
	}
	return h, nil
}

// acquirer is the lock of a request.
func (l *chaosLibrary) acquirer(name string, asked serving.Message) zklock.Acquirer {
	names := strings.Split(name, "+")
	switch {
	case len(names) > 1:
		return zklock.All(l.client.Mutex(names[0]), l.client.Mutex(names[1]))
	case asked.Shared:
		return l.client.RWMutex(name).Reader()
	case asked.Permits > 0:
		return l.client.Semaphore(name, asked.Permits)
	case name == "rw":
		return l.client.RWMutex(name).Writer()
	}
	return l.client.Mutex(name)
}

// notAcquired checks the error of an Acquire, and returns its class: a waiter gives up only when its context ends.
func notAcquired(ctx context.Context, err error) error {
	switch ended := ctx.Err() != nil && errors.Is(err, ctx.Err()); {
	case errors.Is(err, zklock.ErrUnavailable):
		return errors.New("acquire: unavailable")
	case errors.Is(err, zklock.ErrNotAcquired) && ended:
		return errors.New("acquire: gave up")
	}
	return fmt.Errorf(unexpected+"Acquire: an error of an unexpected class (the context's error is %v): %w", ctx.Err(), err)
}

// txn writes the register in ZooKeeper, and returns its version after the write, or 0.
func (l *chaosLibrary) txn(lock *zklock.Lock) (version int32, err error) {
	results, err := lock.Txn(context.Background(), driver.SetOp(l.task.Znode, []byte(lock.Token().String()), driver.AnyVersion))
	n := chaosNote{Token: lock.Token()}
	switch {
	case err == nil:
		n.Version = results[0].Stat.Version
	case errors.Is(err, zklock.ErrUnknownOutcome):
	case errors.Is(err, zklock.ErrLost):
		n.Refused = "lost"
	case errors.Is(err, zklock.ErrUnavailable):
		n.Refused = "unavailable"
	default:
		return 0, fmt.Errorf(unexpected+"Txn: an error of an unknown class: %w", err)
	}
	return n.Version, l.note(n)
}

// Close closes the clients. It waits until nothing of them is left.
func (l *chaosLibrary) Close() error {
	err := l.client.Close()
	l.mu.Lock()
	for _, c := range l.controls {
		c.conn.Close()
	}
	l.mu.Unlock()
	if err := errors.Join(err, leaks.Find(nil)); err != nil {
		return err
	}
	return l.note(chaosNote{Ended: true})
}

// chaosHold is a lock that was acquired. The lock of the register in ZooKeeper writes to it when it is acquired, and before it
// is released. The second write must raise the version by exactly one.
type chaosHold struct {
	library *chaosLibrary
	lock    *zklock.Lock
	first   int32 // the version after the first write; 0: there was none, or its outcome is not known
	err     error // of the first write
}

func (h *chaosHold) Token() string         { return h.lock.Token().String() }
func (h *chaosHold) Held() bool            { return h.lock.Valid() }
func (h *chaosHold) Lost() <-chan struct{} { return h.lock.Done() }

// Release returns an error with the class of what has happened.
func (h *chaosHold) Release(context.Context) error {
	err := h.err
	if h.first > 0 {
		var second int32
		if second, err = h.library.txn(h.lock); err == nil && second > 0 && second != h.first+1 {
			err = fmt.Errorf(unexpected+"version %d was followed by %d under token %v", h.first, second, h.lock.Token())
		}
	}
	released, lost := h.lock.Release(context.Background()), (*zklock.LostError)(nil)
	switch {
	case err != nil:
		return err
	case released == nil:
		return nil
	case errors.Is(released, zklock.ErrReleasePending):
		return errors.New("release: pending")
	case errors.Is(released, zklock.ErrLost) && errors.As(h.lock.Err(), &lost):
		return errors.New(lostBecause + causeOf(lost))
	}
	return fmt.Errorf(unexpected+"Release: an error of an unknown class: %w", released)
}

// lostBecause begins the reason of a release whose lock was lost.
const lostBecause = "lost: "

// causeOf returns the class of the reason why a lock was lost.
func causeOf(lost *zklock.LostError) string {
	for _, cause := range []error{zklock.ErrLeaseOver, zklock.ErrSessionExpired, zklock.ErrNodeDeleted, zklock.ErrClosed} {
		if errors.Is(lost, cause) {
			return cause.Error()
		}
	}
	return lost.Cause.Error()
}

// trust acquires the lock of the control: the trusting client must overlap with another, or the faults would be too weak
// to prove anything.
func (l *chaosLibrary) trust(ctx context.Context, name string) (serving.Hold, error) {
	l.mu.Lock()
	c := l.controls[name]
	if c == nil {
		var err error
		if c, err = newTrusting(l.hosts, l.task.Timeout, chaosTrustPath(name)); err != nil {
			l.mu.Unlock()
			return nil, err
		}
		l.controls[name] = c
	}
	l.mu.Unlock()
	for c.take() != nil {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return chaosTrust{c}, nil
}

// chaosTrustPath is the path of the znode that is the control's lock. In the servers' logs it looks like the only contender
// of a queue.
func chaosTrustPath(name string) string { return "/" + name + "/lock-0000000000" }

// chaosTrust is the lock of the control. It has no token.
type chaosTrust struct{ client *trusting }

func (t chaosTrust) Token() string         { return "" }
func (t chaosTrust) Held() bool            { return t.client.believes() }
func (t chaosTrust) Lost() <-chan struct{} { return nil }

func (t chaosTrust) Release(context.Context) error {
	if !t.client.believes() {
		return nil // its session ends, or it takes the lock again
	}
	if err := t.client.conn.Delete(t.client.path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}
