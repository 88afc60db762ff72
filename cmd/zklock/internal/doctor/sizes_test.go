package doctor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// limited is a driver whose server cuts the connection of a request that is larger than a limit.
type limited struct {
	driver.Connector
	limit int
	asked []int
}

func (l *limited) Keys() []string                                     { return nil }
func (l *limited) OpenConnector(driver.URL) (driver.Connector, error) { return l, nil }
func (l *limited) Close() error                                       { return nil }
func (l *limited) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	s, err := l.Connector.Connect(ctx, timeout)
	return &asked{s, l}, err
}

// asked is a session of limited.
type asked struct {
	driver.Session
	of *limited
}

func (a *asked) Get(ctx context.Context, path string) (driver.Node, error) {
	if a.of.asked = append(a.of.asked, len(path)); len(path) > a.of.limit {
		return driver.Node{}, driver.ErrConnLoss
	}
	return a.Session.Get(ctx, path)
}

// The doctor finds out what servers read with few requests, and compares it with what clients send.
func TestLimitOfServers(t *testing.T) {
	for _, c := range []struct {
		limit, buffer int
		level         Level
		text          string
		asks          int
		stops         int // bytes of paths in a session of a client
	}{
		{1<<20 - 1, 1<<20 - 1, OK, "the servers read requests of 1 MiB", 1, 917_497},
		{1 << 30, 1<<20 - 1, OK, "the servers read requests of 1 MiB", 1, 917_497},
		{1 << 16, 1<<20 - 1, ToDo, "reads no request of 128 KiB, and jute_maxbuffer=1048575 is more", 5, 57_344},
		{1<<16 - 1, 1<<16 - 1, OK, "reads requests of 64 KiB and none of 128 KiB", 5, 57_337},
		{1 << 16, 100_000, ToDo, "reads no request of 97 KiB, and jute_maxbuffer=100000 is more", 6, 57_344},
		{100_000, 100_000, OK, "reads requests of 97 KiB and none of 128 KiB", 6, 87_500},
		{60_000, 1<<20 - 1, ToDo, "reads no request of 64 KiB", 6, 28_672},
		{1 << 12, 1<<20 - 1, ToDo, "reads no request of 8 KiB", 9, 28_672},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			defer e.Close()
			d := &limited{Connector: e.Connector(), limit: c.limit}
			s := server{host: "a:1"}
			s.reads, s.cuts = limits(t.Context(), d, driver.URL{}, c.buffer)
			var r Report
			p, servers := Patient{MaxBuffer: c.buffer}, []server{{host: "b:1", err: errHangs}, s, {host: "c:1"}}
			r.sizes(p, servers)
			if stops := p.room(servers) / 8 * 7; stops != c.stops {
				t.Errorf("limit %d: a client stops at %d, want %d", c.limit, stops, c.stops)
			}
			if len(r.Findings) != 1 || r.Findings[0].Level != c.level || !strings.Contains(r.Findings[0].Text, c.text) || len(d.asked) != c.asks {
				t.Errorf("limit %d: %+v after requests of %v, want %q and %d requests", c.limit, r.Findings, d.asked, c.text, c.asks)
			}
		})
	}
}

// The doctor says how full the fullest session is.
func TestFullestSession(t *testing.T) {
	for many, want := range map[int]struct {
		level Level
		text  string
	}{
		1:   {OK, "has 1 queue node with 57"},
		90:  {Warning, "90 queue nodes with"},
		110: {ToDo, "may stop the servers for good"},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			defer e.Close()
			c, small := open(t, e, "pool_max_sessions=1"), open(t, e)
			acquire(t, small, "x")
			for i := range many {
				acquire(t, c, strings.Repeat("n", 500)+fmt.Sprint(i))
			}
			var r Report
			r.queues(t.Context(), c, 1<<16)
			for _, f := range r.Findings {
				if f.What == "sessions" && (f.Level != want.level || !strings.Contains(f.Text, want.text) || !strings.Contains(f.Text, " of h/1, ")) {
					t.Errorf("%d names: %+v, want %+v", many, f, want)
				}
			}
			if _, known := zklock.ParseURL("mem://?jute_maxbuffer=65536"); known != nil || !r.has("sessions") {
				t.Errorf("%d names: %+v", many, r.Findings)
			}
		})
	}
}
