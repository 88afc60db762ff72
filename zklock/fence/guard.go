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

// ErrStale is matched by every *StaleError: the resource has already seen a newer
// holder of the lock.
var ErrStale = errors.New("stale fencing token")

// ErrUnfenced means that a Guard or a Dialect was given no sequencer, or one that cannot be
// compared with others: one without a token, or one of a permit. Nothing was done.
var ErrUnfenced = errors.New("no fencing token to compare")

// StaleError reports which token was refused, and which newer token is the reason. It
// matches ErrStale.
type StaleError struct {
	// Name is the lock's name.
	Name string

	// Token is the token that was refused.
	Token zklock.Token

	// Newest is the newer token that was seen before.
	Newest zklock.Token

	// Held reports that the lock was still held after the refusal, so that no later holder can have the newer token. It is of
	// another ensemble or root, or of this one before it was set up again, and each write fails until the resource's tokens
	// are reset: see "Tokens went back" in docs/runbook.md. [Dialect.Check] and [InTx] set it.
	Held bool
}

// Error implements error.
func (e *StaleError) Error() string {
	what := "the holder has lost the lock and must stop its work"
	if e.Held {
		what = "but the lock is held, so that one is of another ensemble or root, or of this one before it was set up again (docs/runbook.md: tokens went back)"
	}
	return fmt.Sprintf("fence: token %v of lock %q is stale, the newer %v has been seen: %s", e.Token, e.Name, e.Newest, what)
}

// Is makes a StaleError match ErrStale.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Guard protects resources in memory. It refuses sequencers older than the newest one
// that it has seen for the same name and origin. The zero Guard is ready for use. A
// Guard is safe for concurrent use and must not be copied.
//
// A writer's token is compared with all tokens that were seen. A reader's token is
// compared with writers' tokens only, since readers that hold a lock together have
// tokens in any order.
//
// A Guard remembers tokens only as long as it exists: after a restart of its process,
// a new Guard admits the first token that it sees. If the protection must survive a restart,
// store the token with the resource; see the package documentation.
type Guard struct {
	// MaxNames limits how many names are remembered; 0 means no limit. Set it before
	// the first use. Beyond the limit, the names with the oldest tokens are
	// forgotten. Names that a Do is working on count, but are kept. From then on, for
	// unknown names, tokens older than the forgotten ones are refused. That is safe
	// because the tokens of one origin have one order across all names. So a Guard
	// with a limit may refuse a lock that has been held for very long, but it never
	// admits a stale one. With a limit, use one Guard for each origin.
	MaxNames int

	mu    sync.Mutex
	names map[key]*record // guarded by mu
	idle  byNewest        // guarded by mu; the records without users, the oldest first
	floor zklock.Token    // guarded by mu; the newest token that was ever forgotten
}

type key struct{ origin, name string }

// record is what a Guard knows about a name.
//
// Invariants:
//   - A record with users is not forgotten, so all concurrent users of a name
//     use the same record.
//   - newest and writer change only while both turn and the guard's mu are
//     held, so either suffices to read them.
type record struct {
	key   key
	turn  sync.Mutex // held while a write is under way
	users int        // guarded by Guard.mu; calls that hold turn or wait for it
	index int        // guarded by Guard.mu; position in Guard.idle, if it is in there

	newest zklock.Token // the newest of all tokens seen
	writer zklock.Token // the newest of the exclusive ones
}

// stale reports whether s is refused, and which newer token is the reason.
func (r *record) stale(s Sequencer) (because zklock.Token, stale bool) {
	because = r.newest
	if s.Mode == zklock.Shared {
		because = r.writer
	}
	return because, s.Token.Compare(because) < 0
}

// Check records the tokens of all the sequencers, or refuses them with a *StaleError
// and records none. The sequencers of one call belong together: a write on behalf of
// several locks is refused if any of them is stale.
//
// A newer holder may write between Check and the caller's own write. If that matters,
// use Do.
func (g *Guard) Check(seqs []Sequencer) error {
	return g.Do(seqs, func() error { return nil })
}

// Do is Check followed by fn. No other Do or Check of the same names runs in between.
// Do returns fn's error if it called fn. fn should be short, and must not use the
// guard for the same names: that would be a deadlock. If fn is nil, the error matches
// [zklock.ErrMisuse], and nothing is recorded.
func (g *Guard) Do(seqs []Sequencer, fn func() error) error {
	if fn == nil {
		return fmt.Errorf("fence: Do: %w: the function is nil: use Check without one", zklock.ErrMisuse)
	}
	if len(seqs) == 0 {
		return fmt.Errorf("fence: no sequencers were given (the context may carry no lock): %w", ErrUnfenced)
	}
	for _, s := range seqs {
		if err := s.comparable(); err != nil {
			return err
		}
	}
	records := g.enter(seqs)
	defer g.leave(records)
	if err := g.admit(seqs); err != nil {
		return err
	}
	return fn()
}

// enter waits for its turn for all names. Every call takes names in the same order,
// so no two calls can wait for each other.
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
			// The token that was forgotten with the name was at most the floor.
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

// admit checks the sequencers and records their tokens. The caller holds the turn of
// all names.
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

// leave gives up the turns and forgets the names beyond the limit.
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

// byNewest is a heap of records; the one whose newest token is the oldest is on top.
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
