package integration_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// section is one goroutine's hold of a lock, on the machine's monotonic clock.
type section struct {
	Goroutine int
	Names     []string
	Modes     []zklock.Mode // the mode of each name
	Token     zklock.Token
	From, To  int64
}

// heldName is one name of a section, with its mode.
type heldName struct {
	section
	mode zklock.Mode
}

const (
	mixGoroutines = 50
	mixNames      = 10
	mixPermits    = 3
)

// mix runs many goroutines that acquire and release locks of all kinds for a while.
func (w *worker) mix(c *zklock.Client) error {
	r, err := dialTally(w.task.Register)
	if err != nil {
		return err
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(context.Background(), w.task.For)
	defer cancel()
	var mu sync.Mutex
	var held []section
	var failed error
	var all sync.WaitGroup
	for g := range mixGoroutines {
		all.Go(func() {
			m := mixer{Client: c, remote: r, goroutine: g, rng: rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(g)))}
			var err error
			for ctx.Err() == nil && err == nil {
				err = m.cycle(context.WithoutCancel(ctx))
				if g == 0 && len(m.held)%10 == 0 {
					w.print(report{What: "mixing"}) // without reports the test would take the worker for hung
				}
			}
			mu.Lock()
			defer mu.Unlock()
			held = append(held, m.held...)
			if failed == nil {
				failed = err
			}
		})
	}
	all.Wait()
	if failed != nil {
		return failed
	}
	text, err := json.Marshal(held)
	if err != nil {
		return err
	}
	return os.WriteFile(w.task.Log, text, 0o600)
}

// mixer is one of mix's goroutines.
type mixer struct {
	*zklock.Client
	remote
	goroutine int
	rng       *rand.Rand
	held      []section

	// The values and sequencers of a write to the register in an earlier cycle, which
	// the next cycle repeats.
	late map[string]uint64
	with []fence.Sequencer
}

// cycle acquires a lock, works under it, and releases it. Sometimes it then behaves like a
// holder that was stopped in the middle of its work: it repeats the write of an earlier
// cycle. If no other holder had the lock since, that changes nothing. Otherwise the register
// must refuse the write, or an update is lost.
func (m *mixer) cycle(ctx context.Context) error {
	l, err := mixed(m.Client, m.rng).Acquire(ctx)
	if err != nil {
		return err
	}
	s := section{Goroutine: m.goroutine, Names: l.Names(), Modes: l.Modes(), Token: l.Token(), From: monotonic()}
	seqs, wrote, err := m.work(l)
	if err == nil && m.rng.IntN(4) == 0 {
		err = l.Verify(ctx) // takes a round trip
	}
	s.To = monotonic()
	m.held = append(m.held, s)
	if err = errors.Join(err, l.Release(ctx)); err != nil {
		return err
	}
	if m.late != nil {
		_, _, err = m.use(m.with, m.late)
		m.late = nil
	} else if m.rng.IntN(8) == 0 {
		m.late, m.with = wrote, seqs
	}
	return err
}

// mixed picks a lock at random.
func mixed(c *zklock.Client, rng *rand.Rand) zklock.Acquirer {
	name := func() string { return fmt.Sprint("name-", rng.IntN(mixNames)) }
	switch rng.IntN(10) {
	case 0, 1, 2, 3:
		return c.Mutex(name())
	case 4, 5, 6:
		return c.RWMutex(name()).Reader()
	case 7, 8:
		return c.Semaphore("permits", mixPermits)
	}
	return zklock.All(c.Mutex(name()), c.Mutex(name()), c.RWMutex(name()).Reader())
}

// TestProcessesMixLocksOfAllKinds runs three processes that use locks of all kinds. It checks
// the exclusion by the clock, and by their writes to a register under their tokens. It also
// checks that no goroutine starves. ZKLOCK_MIX sets the length of the run.
func TestProcessesMixLocksOfAllKinds(t *testing.T) {
	long.Parallel(t)
	length := long.Time(t, "ZKLOCK_MIX", 2*time.Second, 20*time.Second)
	zk := trioOfServers(t)
	root := rootOf(t)
	register, addr := serveTally(t)
	var workers []*process
	for i := range 3 {
		params := quick()
		if i > 0 {
			params.Set("keep", "1s")
		}
		workers = append(workers, startWorker(t, task{Role: "mix", For: length, Log: filepath.Join(t.TempDir(), fmt.Sprint(i)),
			Register: addr, URL: ensemble.URL(zk.Server(i).Addr(), root, params)}))
	}
	for _, w := range workers {
		w.await("ready")
	}
	for _, w := range workers {
		w.start()
	}
	byName := map[string][]heldName{}
	cycles := map[zklock.Mode]int{}
	var grants []grant
	for i, w := range workers {
		for r, ok := w.next(); ok && r.What != "done"; r, ok = w.next() {
		}
		text, err := os.ReadFile(w.task.Log)
		if err != nil {
			t.Fatal(err)
		}
		var held []section
		if err := json.Unmarshal(text, &held); err != nil {
			t.Fatal(err)
		}
		for _, s := range held {
			grants = append(grants, grant{s.From, i*mixGoroutines + s.Goroutine})
			for i, name := range s.Names {
				byName[name] = append(byName[name], heldName{s, s.Modes[i]})
				cycles[s.Modes[i]]++
			}
		}
	}
	for name, sections := range byName {
		checkSections(t, name, sections)
		writes := uint64(0)
		for _, s := range sections {
			if s.mode == zklock.Exclusive {
				writes++
			}
		}
		if got := register.values[name]; got != writes {
			t.Errorf("%s: the register counted %d, want %d, the number of writers: updates were lost", name, got, writes)
		}
	}
	t.Logf("%v, names held by mode: %v; the register accepted %d accesses and refused %d\n%v", length, cycles, register.accesses, register.refused,
		zk.Settings(quickSession, len(workers), slices.Max(slices.Collect(maps.Keys(byName)))))
	if len(cycles) != 3 {
		t.Errorf("not all modes were held: %v", cycles)
	}
	if register.refused == 0 {
		t.Error("no late write of a former holder was refused: the register proves nothing")
	}
	checkProgress(t, grants, len(workers)*mixGoroutines)
	raw := dialRaw(t, zk.Server(0).Addr(), 10*time.Second)
	if _, err := raw.Sync(root); err != nil {
		t.Fatal(err)
	}
	names, _, err := raw.Children(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		left, _, err := raw.Children(root + "/" + name)
		if err == nil && len(left) > 0 {
			t.Errorf("left behind below %s: %s", name, strings.Join(left, " "))
		}
	}
}

// grant is the moment when a goroutine acquired a lock.
type grant struct {
	at  int64
	who int // the goroutine's number
}

// checkProgress checks that no goroutine starves: between two of its grants, the others must
// not have so many that its fair share would be some dozens. It counts grants instead of
// time, so that the machine's speed does not matter.
func checkProgress(t *testing.T, grants []grant, goroutines int) {
	t.Helper()
	const most = 50 // times a fair share
	slices.SortFunc(grants, func(a, b grant) int { return cmp.Compare(a.at, b.at) })
	last := make([]int, goroutines)
	longest := 0
	check := func(who, i int) {
		if gap := i - last[who]; gap > most*goroutines {
			t.Errorf("goroutine %d of process %d starved: %d grants to other goroutines, and none to it, after grant %d", who%mixGoroutines, who/mixGoroutines, gap, last[who])
		} else {
			longest = max(longest, gap)
		}
		last[who] = i
	}
	for i, g := range grants {
		check(g.who, i)
	}
	for who := range goroutines {
		check(who, len(grants))
	}
	t.Logf("%d grants to %d goroutines; at most %d grants to others between two grants of one goroutine", len(grants), goroutines, longest)
}

// checkSections checks the sections of one name. While an exclusive holder has the lock, no
// other contender holds it; no more permits are held than exist; and tokens are in the order
// of the holders.
func checkSections(t *testing.T, name string, sections []heldName) {
	t.Helper()
	slices.SortFunc(sections, func(a, b heldName) int { return int(a.From - b.From) })
	var inside []heldName
	var writer, reader zklock.Token
	for _, s := range sections {
		inside = slices.DeleteFunc(inside, func(other heldName) bool { return other.To < s.From })
		for _, other := range inside {
			if s.mode == zklock.Exclusive || other.mode == zklock.Exclusive {
				t.Errorf("%s: held as %v with token %v and as %v with token %v at the same time", name, s.mode, s.Token, other.mode, other.Token)
			}
		}
		inside = append(inside, s)
		if s.mode == zklock.Permit {
			if len(inside) > mixPermits {
				t.Errorf("%s: %d permits were held at the same time, want at most %d", name, len(inside), mixPermits)
			}
			continue
		}
		if s.Token.Compare(writer) <= 0 || s.mode == zklock.Exclusive && s.Token.Compare(reader) <= 0 {
			t.Errorf("%s: %v token %v after a writer's %v and a reader's %v", name, s.mode, s.Token, writer, reader)
		}
		if s.mode == zklock.Exclusive {
			writer = s.Token
		} else if s.Token.Compare(reader) > 0 {
			reader = s.Token
		}
	}
}
