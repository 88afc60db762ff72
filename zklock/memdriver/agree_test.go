package memdriver_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestServersAgree runs random requests with random faults. At the end, every
// acknowledged write must be there, and no write that was definitely refused. All
// servers must have the same tree, and the same as the journal: a transaction that
// was committed once, by any leader, is never undone. No session ends twice.
func TestServersAgree(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			latency := time.Duration(seed%3) * 4 * time.Millisecond
			var j log
			bubble(t, func(t *testing.T, e *memdriver.Ensemble) { agree(t, e, seed, &j) },
				memdriver.WithServers(3+2*int(seed%2)), memdriver.WithLatency(latency), memdriver.WithSyncLimit(2+8*int(seed/2%2)), memdriver.WithJournal(j.note))
		})
	}
}

// log collects what the journal reports. The ensemble's mutex guards it.
type log struct {
	zxid  int64
	ended map[int64]bool
	there map[string]bool
	wrong []string
}

func (j *log) note(tx memdriver.Transaction) {
	if j.ended == nil {
		j.ended, j.there = make(map[int64]bool), make(map[string]bool)
	}
	fault := func(format string, args ...any) {
		j.wrong = append(j.wrong, fmt.Sprintf("%#x: ", tx.Zxid)+fmt.Sprintf(format, args...))
	}
	if tx.Zxid <= j.zxid {
		fault("reported after %#x", j.zxid)
	}
	j.zxid = tx.Zxid
	if j.ended[tx.Session] {
		fault("request of session %#x, which has ended", tx.Session)
	}
	j.ended[tx.Session] = tx.Ended
	for _, c := range tx.Changes {
		if c.Kind != driver.OpSet && j.there[c.Path] == (c.Kind == driver.OpCreate) {
			fault("%v of %s, which does not fit the earlier changes", c.Kind, c.Path)
		}
		if j.there[c.Path] = true; c.Kind == driver.OpDelete {
			delete(j.there, c.Path)
		}
	}
}

func agree(t *testing.T, e *memdriver.Ensemble, seed uint64, journal *log) {
	var mu sync.Mutex
	acked, refused := make(map[string]bool), make(map[string]bool)
	unknown := 0
	root := connect(t, e.Connector(), 20*time.Second)
	create(t, root, "/r", driver.Persistent)

	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for i := range 4 {
		s := connect(t, e.Connector(), 8*time.Second)
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				path := fmt.Sprintf("/r/%d-%d", i, n)
				once, done := context.WithTimeout(ctx, time.Duration(random.IntN(5000))*time.Millisecond)
				var err error
				if random.IntN(2) == 0 {
					_, err = s.Create(once, path, nil, driver.Persistent, open)
				} else {
					_, err = s.Multi(once, []driver.Op{
						driver.CreateOp(path, nil, driver.Persistent, open),
						driver.CreateOp("/r/seq-", nil, driver.EphemeralSequential, open),
						driver.SetOp("/r", []byte(path), driver.AnyVersion),
					})
				}
				done()
				mu.Lock()
				switch {
				case err == nil:
					acked[path] = true
				case errors.Is(err, driver.ErrConnLoss):
					unknown++
				default:
					refused[path] = true
				}
				mu.Unlock()
				if errors.Is(err, driver.ErrSessionExpired) {
					var again error
					if s, again = e.Connector().Connect(ctx, 8*time.Second); again != nil {
						return
					}
				}
				wait(ctx, time.Duration(random.IntN(300))*time.Millisecond)
			}
		})
	}

	random := rand.New(rand.NewPCG(seed, 99))
	servers := len(e.Servers())
	for range 120 {
		a, b := random.IntN(servers), random.IntN(servers)
		switch random.IntN(12) {
		case 0:
			e.Partition(memdriver.AroundServer(a))
		case 1:
			e.Partition(memdriver.AroundServer(a).Reset())
		case 2:
			e.Partition(memdriver.BetweenServers(a, b))
		case 3:
			e.Partition(memdriver.AroundClients(a))
		case 4:
			e.Restart(a)
		case 5:
			e.Lag(a, time.Duration(random.IntN(1000))*time.Millisecond)
		case 6:
			if ids := e.Sessions(); len(ids) > 0 {
				e.KillSession(ids[random.IntN(len(ids))])
			}
		case 7, 8, 9, 10: // cut random links between servers
			e.Heal()
			for x := range servers {
				for y := range x {
					switch random.IntN(4) {
					case 0:
						e.Partition(memdriver.BetweenServers(x, y))
					case 1:
						e.Partition(memdriver.BetweenServers(x, y).Reset())
					}
				}
			}
		default:
			e.Heal()
		}
		pass(time.Duration(random.IntN([]int{300, 3000}[random.IntN(2)])) * time.Millisecond)
	}
	e.Heal()
	for i := range servers {
		e.Lag(i, 0)
	}
	pass(20 * time.Second)
	stop()
	clients.Wait()
	pass(20 * time.Second)

	trees := e.Trees()
	for i, tree := range trees {
		if tree != trees[0] {
			t.Fatalf("server %d differs from server 0:\n%s\n%s\n%s", i, tree, trees[0], e.Dump())
		}
	}
	there := make(map[string]bool)
	for line := range strings.SplitSeq(trees[0], "\n") {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			there["/r/"+name] = true
		}
	}
	for _, text := range journal.wrong {
		t.Error("journal: ", text)
	}
	for path := range journal.there {
		if strings.HasPrefix(path, "/r/") && !there[path] {
			t.Errorf("%s was committed and is gone", path)
		}
	}
	for path := range there {
		if strings.Contains(path, "-") && !journal.there[path] {
			t.Errorf("%s exists, but was never committed, or was deleted", path)
		}
	}
	for path := range acked {
		if !there[path] {
			t.Errorf("%s was acknowledged and is gone", path)
		}
	}
	for path := range refused {
		if there[path] {
			t.Errorf("%s was refused, but exists", path)
		}
	}
	if len(acked) < 50 || unknown == 0 {
		t.Fatalf("%d acknowledged, %d refused, %d unknown: too few for the test to mean anything", len(acked), len(refused), unknown)
	}
	t.Logf("%d acknowledged, %d refused, %d unknown", len(acked), len(refused), unknown)
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// TestRunsRepeat: the same faults at the same times have the same outcome, with
// identical zxids.
func TestRunsRepeat(t *testing.T) {
	run := func() (dump string) {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New(memdriver.WithServers(3), memdriver.WithTickTime(time.Second), memdriver.WithLatency(time.Millisecond))
			defer e.Close()
			var all []driver.Session
			for range 10 {
				s := connect(t, e.Connector(), 6*time.Second)
				parent := fmt.Sprint("/p", len(all))
				create(t, s, parent, driver.Persistent)
				create(t, s, parent+"/e", driver.Ephemeral)
				all = append(all, s)
			}
			e.Partition(memdriver.AroundServer(1))
			for _, s := range all[:6] {
				e.Partition(memdriver.AroundSession(s.ID()))
			}
			pass(8 * time.Second)
			e.Restart(0)
			pass(4 * time.Second)
			e.Heal()
			pass(4 * time.Second)
			reader := connect(t, e.Connector(), 6*time.Second)
			for i, s := range all {
				n, err := reader.Get(t.Context(), fmt.Sprint("/p", i))
				dump += fmt.Sprintln(s.ID(), state(s), s.Server(), n.Stat, err)
			}
			dump += e.Dump()
		})
		return dump
	}
	first := run()
	for range 20 {
		if again := run(); again != first {
			t.Fatalf("the first run ended with\n%s\na later one with\n%s", first, again)
		}
	}
}
