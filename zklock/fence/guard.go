package fence

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zklock/go-zklock/zklock"
)

// ErrStale is matched by every *StaleError: a newer holder of the lock has been
// here already.
var ErrStale = errors.New("stale fencing token")

// ErrUnfenced means that a Guard was given no sequencer, or one that cannot be
// compared with others: without a token, or of a permit. Nothing was done.
var ErrUnfenced = errors.New("no fencing token to go by")

// StaleError tells which token was refused and because of which. It matches
// ErrStale.
type StaleError struct {
	// Name is the lock.
	Name string

	// Token is the one that was refused.
	Token zklock.Token

	// Newest is the one that it was older than.
	Newest zklock.Token
}

// Error implements error.
func (e *StaleError) Error() string {
	return fmt.Sprintf("fence: token %v of lock %q is stale, %v has been seen: its holder has lost the lock and must not go on",
		e.Token, e.Name, e.Newest)
}

// Is makes a StaleError match ErrStale.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Guard stands before resources in memory and refuses sequencers older than the
// newest it has seen for the same name and origin. The zero Guard is ready for
// use and safe for concurrent use; it must not be copied.
//
// A writer's token is compared with all that were seen. A reader's is compared
// with writers' only, since readers that hold a lock together have tokens in
// any order.
//
// It remembers what it has seen as long as it lives and no longer: a guard that
// starts anew, with its process, admits the first token that comes. What has to
// survive that belongs where the resource does, see the package documentation.
type Guard struct {
	// MaxNames bounds how many names are remembered; 0 stands for no bound. Set
	// it before the first use. When there are more, the names with the oldest
	// tokens are forgotten, except those that a Do is at work for: these count,
	// and are kept. From then on tokens older than the forgotten ones are refused
	// for names that are not known: tokens of one origin are in one order
	// whatever their names, so a guard can be too strict about a lock that is
	// held for very long, but never too lenient. With a bound, use one Guard per
	// origin.
	MaxNames int

	mu    sync.Mutex
	names map[key]*record // guarded by mu
	idle  byNewest        // guarded by mu; those of them without users, the oldest first
	floor zklock.Token    // guarded by mu; the newest token ever forgotten
}

type key struct{ origin, name string }

// record is what a Guard knows about a name.
//
// Invariants:
//   - A record that is used by anybody is not forgotten, so all who use a name
//     at one time use one record.
//   - newest and writer change only while both turn and the guard's mu are
//     held, so either suffices to read them.
type record struct {
	key   key
	turn  sync.Mutex // held while somebody's write is under way
	users int        // guarded by Guard.mu; those who hold turn or wait for it
	index int        // guarded by Guard.mu; place in Guard.idle, if it is there

	newest zklock.Token // of all seen
	writer zklock.Token // of exclusive ones
}

// stale says because of which token s is refused, if it is.
func (r *record) stale(s Sequencer) (because zklock.Token, stale bool) {
	because = r.newest
	if s.Mode == zklock.Shared {
		because = r.writer
	}
	return because, s.Token.Compare(because) < 0
}

// Check takes note of the sequencers, or refuses them with a *StaleError and
// takes note of none. Sequencers of one check go together: a write on behalf of
// several locks is refused if any of them is stale.
//
// Between Check and what the caller does then a newer holder may come and go.
// Where that matters, use Do.
func (g *Guard) Check(seqs []Sequencer) error {
	return g.Do(seqs, func() error { return nil })
}

// Do is Check followed by fn, with nobody else's Do or Check of the same names
// in between. It returns fn's error if fn was called. fn should be short, and
// must not use the guard for the same names: it would wait for itself.
func (g *Guard) Do(seqs []Sequencer, fn func() error) error {
	if len(seqs) == 0 {
		return fmt.Errorf("fence: given no sequencers, as of a context without a lock: %w", ErrUnfenced)
	}
	for _, s := range seqs {
		if s.Token.IsZero() || s.Mode != zklock.Exclusive && s.Mode != zklock.Shared {
			return fmt.Errorf("fence: lock %q: %w", s.Name, ErrUnfenced)
		}
	}
	records := g.enter(seqs)
	defer g.leave(records)
	if err := g.admit(seqs); err != nil {
		return err
	}
	return fn()
}

// enter waits for the turn of all names. Everybody takes names in the same
// order, so nobody can wait for one who waits for them.
func (g *Guard) enter(seqs []Sequencer) []*record {
	records := make([]*record, 0, len(seqs))
	g.mu.Lock()
	if g.names == nil {
		g.names = make(map[key]*record)
	}
	for _, s := range seqs {
		k := key{s.Origin, s.Name}
		r := g.names[k]
		if r == nil {
			// What was forgotten about the name was at most the floor.
			r = &record{key: k, newest: g.floor, writer: g.floor}
			g.names[k] = r
		} else if r.users == 0 {
			heap.Remove(&g.idle, r.index)
		}
		if !slices.Contains(records, r) {
			r.users++
			records = append(records, r)
		}
	}
	g.mu.Unlock()
	slices.SortFunc(records, func(a, b *record) int {
		return cmp.Or(cmp.Compare(a.key.origin, b.key.origin), cmp.Compare(a.key.name, b.key.name))
	})
	for _, r := range records {
		r.turn.Lock()
	}
	return records
}

// admit checks and takes note. The caller has the turn of all names.
func (g *Guard) admit(seqs []Sequencer) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range seqs {
		if because, stale := g.names[key{s.Origin, s.Name}].stale(s); stale {
			return &StaleError{Name: s.Name, Token: s.Token, Newest: because}
		}
	}
	for _, s := range seqs {
		r := g.names[key{s.Origin, s.Name}]
		if s.Token.Compare(r.newest) > 0 {
			r.newest = s.Token
		}
		if s.Mode == zklock.Exclusive && s.Token.Compare(r.writer) > 0 {
			r.writer = s.Token
		}
	}
	return nil
}

// leave ends the turn and forgets what is too much.
func (g *Guard) leave(records []*record) {
	for _, r := range records {
		r.turn.Unlock()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range records {
		if r.users--; r.users == 0 {
			heap.Push(&g.idle, r)
		}
	}
	for g.MaxNames > 0 && len(g.names) > g.MaxNames && len(g.idle) > 0 {
		r := heap.Pop(&g.idle).(*record)
		delete(g.names, r.key)
		if r.newest.Compare(g.floor) > 0 {
			g.floor = r.newest
		}
	}
}

// byNewest is a heap of records with the oldest newest token on top.
type byNewest []*record

func (h byNewest) Len() int           { return len(h) }
func (h byNewest) Less(i, j int) bool { return h[i].newest.Compare(h[j].newest) < 0 }
func (h byNewest) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *byNewest) Push(x any) {
	r := x.(*record)
	r.index = len(*h)
	*h = append(*h, r)
}

// Pop implements heap.Interface.
func (h *byNewest) Pop() any {
	old := *h
	r := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return r
}
