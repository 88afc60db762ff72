package integration_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// refusals returns hooks that count operations which the server refused because of missing
// rights. With acl=creator, that is how it would refuse a connection without credentials.
func refusals() (zklock.Hooks, *atomic.Int32) {
	n := new(atomic.Int32)
	return zklock.Hooks{Operation: func(ctx context.Context, _ zklock.OperationEvent) (context.Context, func(error)) {
		return ctx, func(err error) {
			if errors.Is(err, driver.ErrNoAuth) || errors.Is(err, driver.ErrInvalidACL) {
				n.Add(1)
			}
		}
	}}, n
}

// owning returns the parameters of clients that own the znodes that they create.
func owning(kv ...string) url.Values {
	return quick(append([]string{"acl", "creator", "pool_max_sessions", "1", "connect_timeout", patience.String()}, kv...)...)
}

// credentialsFirst fails the test if a connection sent any request before it presented its
// credentials, or presented them more than once.
func credentialsFirst(t *testing.T, asked [][]int32) (used int) {
	t.Helper()
	for i, ops := range asked {
		for j, op := range ops {
			if (op == codeAuth) != (j == 0) {
				t.Errorf("connection %d: request %d is operation %d; all: %v", i, j, op, ops)
				break
			}
		}
		if len(ops) > 0 {
			used++
		}
	}
	return used
}

// cutUnderLoad cuts a client's connections at random moments, while goroutines acquire locks on them. The
// client loses no lock, and no acquisition fails.
func cutUnderLoad(t *testing.T, c *zklock.Client, w *wiretap, kills int) {
	t.Helper()
	held := acquire(t, c.Mutex("held"))
	ctx, stop := context.WithCancel(within(t))
	defer stop()
	var workers sync.WaitGroup
	var done atomic.Int64
	for i := range 6 {
		workers.Go(func() {
			for ctx.Err() == nil {
				err := zklock.Do(ctx, c.Mutex(name(i%3)), func(context.Context, *zklock.Lock) error { return nil }, zklock.WithoutHandover())
				if err == nil {
					done.Add(1)
				} else if ctx.Err() == nil {
					t.Errorf("%v", err)
					return
				}
			}
		})
	}
	for range kills {
		before, work := c.Stats().Reconnects, done.Load()
		pause := time.NewTimer(time.Duration(rand.IntN(30)) * time.Millisecond)
		<-pause.C // so that the reset hits a random moment of the exchange
		w.KillConns()
		eventually(t, "the client has reconnected and goes on", func() bool { return c.Stats().Reconnects > before && done.Load() > work || t.Failed() })
	}
	stop()
	workers.Wait()
	if err := held.Verify(within(t)); err != nil {
		t.Errorf("the lock that was held all the time: %v", err)
	}
	release(t, held)
}

// TestCredentialsComeFirstOnEveryConnection: a new connection has no credentials until the
// client presents them. Requests that wait to be sent must not go out before them.
func TestCredentialsComeFirstOnEveryConnection(t *testing.T) {
	t.Parallel()
	const kills = 25
	e := sharedEnsemble(t)
	w := newWiretap(t, e.Hosts())
	hooks, refused := refusals()
	c := dial(t, w.Addr(), owning(), zklock.WithHooks(hooks))
	cutUnderLoad(t, c, w, kills)
	if used := credentialsFirst(t, w.asked(0)); used < kills {
		t.Errorf("%d connections were used, want at least %d", used, kills)
	}
	if n := refused.Load(); n != 0 {
		t.Errorf("%d operations were refused, want none", n)
	}
	if st := c.Stats(); st.SessionsOpened != 1 {
		t.Errorf("%d sessions were opened, want 1", st.SessionsOpened)
	}
}

// TestCredentialsRefusedOnReconnect: after a reconnect the server refuses the holder's
// credentials. The client sends no requests without an identity, and its lock is lost in
// time. It reports the reason to callers that want a lock. It works again when the server
// accepts its credentials.
func TestCredentialsRefusedOnReconnect(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	w := newWiretap(t, e.Hosts())
	hooks, refused := refusals()
	c := dial(t, w.Addr(), owning("session_timeout", "4s"), zklock.WithHooks(hooks))
	other := dial(t, e.Hosts(), owning())
	held := acquire(t, c.Mutex("x"))
	next := try(t, within(t), other.Mutex("x"))

	before := w.made()
	w.spoil.Store(true)
	w.KillConns()
	receive(t, "the loss", held.Done())
	var lost *zklock.LostError
	if err := held.Err(); !errors.As(err, &lost) || lost.Cause == zklock.ErrClosed {
		t.Errorf("the lock ended with %v, want a loss, and not by Close", err)
	}
	for range 3 {
		began := time.Now()
		_, err := c.Mutex("x").Acquire(within(t))
		if !errors.Is(err, zklock.ErrNoAuth) || !errors.Is(err, driver.ErrAuthFailed) {
			t.Errorf("Acquire with refused credentials: %v, want ErrNoAuth and ErrAuthFailed", err)
		}
		if d := time.Since(began); d > atOnce {
			t.Errorf("Acquire with refused credentials failed after %v, want at once", d)
		}
	}
	for i, ops := range w.asked(before) {
		for _, op := range ops {
			if op != codeAuth && op != codeClose {
				t.Errorf("connection %d sent the operations %v although its credentials were refused", i, ops)
				break
			}
		}
	}
	if n := w.made() - before; n < 4 {
		t.Errorf("%d connections were made, want at least 4: the client has not tried again", n)
	}

	w.spoil.Store(false)
	w.KillConns() // the next connections present credentials that the server accepts
	l := next.must(t)
	if !isDone(held) {
		t.Error("the next client acquired the lock before the loss")
	}
	release(t, l)
	release(t, acquire(t, c.Mutex("x")))
	if n := refused.Load(); n != 0 {
		t.Errorf("%d operations were refused, want none", n)
	}
}

// TestExpiryWithCredentials: after the session has expired, the next session gets the same
// identity before it is used.
func TestExpiryWithCredentials(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	w := newWiretap(t, e.Hosts())
	hooks, refused := refusals()
	c := dial(t, w.Addr(), owning("session_timeout", "3s"), zklock.WithHooks(hooks))
	other := dial(t, e.Hosts(), owning())
	for range 2 {
		held := acquire(t, c.Mutex("x"))
		waiting := try(t, within(t), c.Mutex("x"))
		next := try(t, within(t), other.Mutex("x"))
		w.Cut()
		receive(t, "the loss", held.Done())
		l := next.must(t) // the session has expired
		if held.Valid() {
			t.Error("the lock is valid although another client holds it")
		}
		w.Heal()
		release(t, l)
		release(t, waiting.must(t))
	}
	credentialsFirst(t, w.asked(0))
	if n := refused.Load(); n != 0 {
		t.Errorf("%d operations were refused, want none", n)
	}
	if st := c.Stats(); st.SessionsOpened < 3 {
		t.Errorf("%d sessions were opened, want the first and one for each expiry", st.SessionsOpened)
	}
}

// TestPingSaysWhichRightIsMissingOnRealServers: Ping finds the missing rights in the server's
// results for each operation of a refused transaction.
func TestPingSaysWhichRightIsMissingOnRealServers(t *testing.T) {
	t.Parallel()
	const all = zk.PermRead | zk.PermCreate | zk.PermDelete
	e := sharedEnsemble(t)
	operator := dialRaw(t, e.Hosts(), patience)
	if err := operator.AddAuth("digest", []byte("operator:"+canary)); err != nil {
		t.Fatal(err)
	}
	root := rootOf(t)
	if _, err := operator.Create(root, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	early := dial(t, e.Hosts(), quick(), zklock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if err := early.Ping(within(t)); err != nil { // with all rights
		t.Fatal(err)
	}
	before := stat(t, operator, root)
	for _, c := range []struct {
		what  string
		perms int32
		says  []string // the texts in the error; nil: Ping succeeds
	}{
		{"all", all, nil},
		{"no READ", all &^ zk.PermRead, []string{"no READ on " + root + ","}},
		{"no CREATE", all &^ zk.PermCreate, []string{"no CREATE on " + root + ","}},
		{"no DELETE", all &^ zk.PermDelete, nil},
		{"nothing", 0, []string{"no READ on " + root + ",", "no CREATE on " + root + ","}},
	} {
		acl := zk.AuthACL(zk.PermAll)
		if c.perms != 0 {
			acl = append(acl, zk.WorldACL(c.perms)...)
		}
		if _, err := operator.SetACL(root, acl, -1); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		// One client has a session already, and the other has to open one.
		for who, client := range map[string]*zklock.Client{"early": early, "late": dial(t, e.Hosts(), quick())} {
			err := client.Ping(within(t))
			if (err == nil) != (c.says == nil) || err != nil && (!errors.Is(err, zklock.ErrNoAuth) || !strings.Contains(err.Error(), `as user "`+canaryUser+`"`)) {
				t.Errorf("%s, %s: %v", c.what, who, err)
			}
			for i, word := range c.says {
				if err != nil && !strings.Contains(err.Error(), word) && (i == 0 || who == "early") { // without READ no session is opened that could find more
					t.Errorf("%s, %s: %q does not contain %q", c.what, who, err, word)
				}
			}
		}
		if told := strings.Contains(log.String(), "permission=DELETE on="+root); told != (c.what == "no DELETE") {
			t.Errorf("%s: logged %q, want a warning about DELETE only if that right is missing", c.what, log.String())
		}
	}
	before.Aversion = stat(t, operator, root).Aversion // SetACL raises only this version
	if after := stat(t, operator, root); *after != *before {
		t.Errorf("the root was %+v and is %+v, want it unchanged", before, after)
	}
}

// TestWrongPasswordIsReportedByLocksOnRealServers: the root is open to all clients. So a wrong
// password shows only at znodes that other clients have created.
func TestWrongPasswordIsReportedByLocksOnRealServers(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	if _, err := dialRaw(t, e.Hosts(), patience).Create(rootOf(t), nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	held := acquire(t, dial(t, e.Hosts(), owning()).Mutex("x"))
	wrong, err := zklock.Open("zk://"+canaryUser+":wrong@"+e.Hosts()+rootOf(t)+"?"+owning().Encode(), zklock.WithLogger(searchedLog()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = wrong.Close() })
	if err := wrong.Ping(within(t)); err != nil {
		t.Errorf("Ping, which does not read locks: %v", err)
	}
	for what, use := range map[string]func() error{
		"Acquire":    func() error { _, err := wrong.Mutex("x").Acquire(within(t)); return err },
		"TryAcquire": func() error { _, err := wrong.Mutex("x").TryAcquire(within(t)); return err },
		"Contenders": func() error { _, err := wrong.Contenders(within(t), "x"); return err },
	} {
		if err := use(); !errors.Is(err, zklock.ErrNoAuth) || !strings.Contains(err.Error(), "password is wrong") || !strings.Contains(err.Error(), rootOf(t)+"/x") {
			t.Errorf("%s: %v", what, err)
		}
	}
	release(t, held)
}
