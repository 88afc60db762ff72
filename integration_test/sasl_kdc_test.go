package integration_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/kerberos"
	"github.com/zklock/go-zklock/internal/testkit/kdc"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// farm is three servers that demand Kerberos, each behind a proxy.
type farm struct {
	t     *testing.T
	kdc   *kdc.KDC
	id    identity
	hosts string
	links []*proxy.Proxy
}

func newFarm(t *testing.T, c kdc.Config) *farm {
	t.Helper()
	f := &farm{t: t}
	f.id, f.kdc = kerberosIdentity(t, c)
	var hosts []string
	for _, s := range f.id.start(t, 3).Servers() {
		p, err := proxy.New(s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		hosts, f.links = append(hosts, p.Addr()), append(f.links, p)
	}
	f.hosts = strings.Join(hosts, ",")
	return f
}

// cut resets all connections of the clients.
func (f *farm) cut() {
	for _, p := range f.links {
		p.KillConns()
	}
}

// load lets goroutines of a client use locks until stop is called, which returns how often they
// have had one. An acquisition that fails fails the test.
func (f *farm) load(c *zklock.Client) (stop func() int64) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var done atomic.Int64
	for i := range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				err := zklock.Do(ctx, c.Mutex(name(i%2)), func(context.Context, *zklock.Lock) error { return nil }, zklock.WithoutHandover())
				if err == nil {
					done.Add(1)
				} else if ctx.Err() == nil {
					f.t.Errorf("%v", err)
					return
				}
			}
		})
	}
	f.t.Cleanup(func() { cancel(); all.Wait() })
	return func() int64 {
		cancel()
		all.Wait()
		return done.Load()
	}
}

// TestKerberosTicketsAreRenewed: tickets live for a minute. They are renewed under load, with a
// keytab and a credential cache, and while connections are cut. No lock is lost.
func TestKerberosTicketsAreRenewed(t *testing.T) {
	t.Parallel()
	long.Test(t, "tickets of a minute, renewed for some minutes")
	const life = time.Minute
	length := long.Time(t, "ZKLOCK_TICKETS", life, 2*time.Minute)
	f := newFarm(t, kdc.Config{Life: life, Renewable: time.Hour})
	f.kdc.Add("cached")
	here := kerberos.WithConfigFile(f.kdc.ConfigFile())
	cache := f.kdc.Cache("cached", f.kdc.Export("cached"), "-r", "1h")
	byCache := identity{opts: []zklock.Option{zkdriver.WithSASL(kerberos.Cache(cache, here))}}
	clients := []*zklock.Client{f.id.dial(t, f.hosts, []string{"acl", "open"}), byCache.dial(t, f.hosts, []string{"acl", "open"})}
	var held []*zklock.Lock
	var stops []func() int64
	for i, c := range clients {
		held = append(held, acquire(t, c.Mutex("held-"+name(i))))
		stops = append(stops, f.load(c))
	}
	cuts := 0
	for began := time.Now(); time.Since(began) < length && !t.Failed(); cuts++ {
		<-time.After(time.Duration(rand.IntN(3000)) * time.Millisecond)
		f.cut()
	}
	for i, c := range clients {
		cycles := stops[i]()
		st := c.Stats()
		t.Logf("client %d: %d cycles, %d reconnects, %d sessions opened, %d locks lost", i, cycles, st.Reconnects, st.SessionsOpened, st.Lost)
		if err := held[i].Verify(within(t)); err != nil || st.Lost > 0 {
			t.Errorf("client %d: %v, %d locks lost", i, err, st.Lost)
		}
		release(t, held[i])
	}
	renewals := strings.Count(f.kdc.Log(), "ISSUE")
	t.Logf("%d cuts in %v; the KDC has issued %d tickets", cuts, length, renewals)
	if least := int(length/life) * 2; renewals < least {
		t.Errorf("the KDC has issued %d tickets, want at least %d", renewals, least)
	}
}

// TestLocksOutlastTheKDC: the KDC is down while locks are held and connections are cut. No lock is
// lost while the tickets last, also if the session has to move to another server. Then a cut takes
// the lock, and the error says that no KDC answers. When the KDC is back, the client works again.
func TestLocksOutlastTheKDC(t *testing.T) {
	t.Parallel()
	long.Test(t, "tickets have to expire")
	life := long.Time(t, "ZKLOCK_KDC_DOWN", 20*time.Second, 40*time.Second)
	f := newFarm(t, kdc.Config{Life: life})
	c := f.id.dial(t, f.hosts, []string{"pool_max_sessions", "1", "connect_timeout", "3s"})
	began := time.Now() // the tickets expire later
	held := acquire(t, c.Mutex("x"))
	eventually(t, "the client has tickets", func() bool { return strings.Contains(f.kdc.Log(), "for "+serverPrincipal+"@") })
	f.kdc.Stop()
	cuts := 0
	for ; time.Since(began) < life-5*time.Second; cuts++ {
		before := c.Stats().Reconnects
		down := f.links[cuts%len(f.links)]
		down.Refuse() // its clients move to another server
		f.cut()
		eventually(t, "the client has reconnected", func() bool { return c.Stats().Reconnects > before || isDone(held) })
		if err := held.Verify(within(t)); err != nil {
			t.Fatalf("after %v without a KDC, cut %d: %v", time.Since(began), cuts, err)
		}
		down.Heal()
		<-time.After(100 * time.Millisecond)
	}
	t.Logf("%d cuts in %v without a KDC: no lock lost", cuts, time.Since(began).Round(time.Second))

	<-time.After(life - time.Since(began) + time.Second)
	if !held.Valid() {
		t.Error("the lock was lost because the ticket expired, without a cut")
	}
	f.cut()
	receive(t, "the loss", held.Done())
	_, err := c.Mutex("y").Acquire(within(t))
	if !errors.Is(err, zklock.ErrUnavailable) {
		t.Errorf("Acquire without tickets: %v, want ErrUnavailable", err)
	} else {
		saysAll(t, err, []string{"no KDC of realm " + kdc.Realm, "connection refused"})
		t.Logf("the error: %v", err)
	}
	f.kdc.Resume()
	eventually(t, "the client works again", func() bool {
		l, err := c.Mutex("x").Acquire(within(t))
		return err == nil && l.Release(within(t)) == nil
	})
}

// TestKerberosServersGetNewKeys: the servers' principal gets new keys, and the servers restart with those
// alone. They refuse the tickets that clients have, and the clients work on with others.
func TestKerberosServersGetNewKeys(t *testing.T) {
	t.Parallel()
	long.Test(t, "servers restart")
	id, k := kerberosIdentity(t, kdc.Config{})
	e := id.start(t, 1)
	c := id.dial(t, e.Hosts(), nil)
	release(t, acquire(t, c.Mutex("x")))
	if err := os.Remove(k.Export(serverPrincipal)); err != nil {
		t.Fatal(err)
	}
	k.Admin("cpw", "-randkey", serverPrincipal)
	k.Export(serverPrincipal)
	e.Server(0).Kill()
	if err := e.Server(0).Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the client works with the new keys", func() bool {
		l, err := c.Mutex("x").Acquire(within(t))
		return err == nil && l.Release(within(t)) == nil
	})
}
