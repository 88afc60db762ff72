package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/integration_test/ensemble"
	"github.com/zklock/go-zklock/zklock"
)

// section is one stretch for which a goroutine held something, on the machine's
// monotonic clock.
type section struct {
	Goroutine int
	Names     []string
	Mode      zklock.Mode
	Token     zklock.Token
	From, To  int64
}

const (
	mixGoroutines = 50
	mixNames      = 10
	mixPermits    = 3
)

// mix has many goroutines hold locks of all kinds for a while.
func (w *worker) mix(c *zklock.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), w.task.For)
	defer cancel()
	var mu sync.Mutex
	var held []section
	var failed error
	var all sync.WaitGroup
	for g := range mixGoroutines {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(g)))
			var mine []section
			for ctx.Err() == nil {
				l, err := mixed(c, rng).Acquire(context.WithoutCancel(ctx))
				if err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
				s := section{Goroutine: g, Names: l.Names(), Mode: l.Mode(), Token: l.Token(), From: monotonic()}
				if rng.IntN(4) == 0 {
					err = l.Verify(context.WithoutCancel(ctx)) // takes a round trip
				}
				s.To = monotonic()
				mine = append(mine, s)
				if released := l.Release(context.WithoutCancel(ctx)); err == nil {
					err = released
				}
				if err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
			}
			mu.Lock()
			held = append(held, mine...)
			mu.Unlock()
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

// mixed picks what to hold. All is exclusive on every name, so that its mode
// tells how each is held.
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
	return zklock.All(c.Mutex(name()), c.Mutex(name()), c.Mutex(name()))
}

// TestProcessesMixLocksOfAllKinds looks at what three processes held together.
// ZKLOCK_MIX makes it last longer.
func TestProcessesMixLocksOfAllKinds(t *testing.T) {
	ensemble.Require(t)
	length := 10 * time.Second
	if s := os.Getenv("ZKLOCK_MIX"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	zk := ensemble.Start(t, ensemble.Config{Servers: 3})
	root := rootOf(t)
	var workers []*process
	for i := range 3 {
		workers = append(workers, startWorker(t, task{Role: "mix", For: length, Log: filepath.Join(t.TempDir(), fmt.Sprint(i)),
			URL: ensemble.URL(zk.Server(i).Addr(), root, quick())}))
	}
	for _, w := range workers {
		w.await("ready")
	}
	for _, w := range workers {
		w.start()
	}
	byName := map[string][]section{}
	cycles := map[zklock.Mode]int{}
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
		progress := make([]int, mixGoroutines)
		for _, s := range held {
			progress[s.Goroutine]++
			cycles[s.Mode]++
			for _, name := range s.Names {
				byName[name] = append(byName[name], s)
			}
		}
		if starved := slices.Index(progress, 0); starved >= 0 {
			t.Errorf("process %d: goroutine %d never got anything", i, starved)
		}
	}
	for name, sections := range byName {
		checkSections(t, name, sections)
	}
	t.Logf("%v, cycles by mode: %v", length, cycles)
	if len(cycles) != 3 {
		t.Errorf("not all modes were held: %v", cycles)
	}
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

// checkSections demands of what was held under one name: nobody beside an
// exclusive holder, no more permits than there are, and tokens in the order of
// the holders.
func checkSections(t *testing.T, name string, sections []section) {
	t.Helper()
	slices.SortFunc(sections, func(a, b section) int { return int(a.From - b.From) })
	var inside []section
	var writer, reader zklock.Token
	for _, s := range sections {
		inside = slices.DeleteFunc(inside, func(other section) bool { return other.To < s.From })
		for _, other := range inside {
			if s.Mode == zklock.Exclusive || other.Mode == zklock.Exclusive {
				t.Errorf("%s: %v %v held beside %v %v", name, s.Mode, s.Token, other.Mode, other.Token)
			}
		}
		inside = append(inside, s)
		if s.Mode == zklock.Permit {
			if len(inside) > mixPermits {
				t.Errorf("%s: %d permits held at once", name, len(inside))
			}
			continue
		}
		if s.Token.Compare(writer) <= 0 || s.Mode == zklock.Exclusive && s.Token.Compare(reader) <= 0 {
			t.Errorf("%s: %v token %v after a writer's %v and a reader's %v", name, s.Mode, s.Token, writer, reader)
		}
		if s.Mode == zklock.Exclusive {
			writer = s.Token
		} else if s.Token.Compare(reader) > 0 {
			reader = s.Token
		}
	}
}
