package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/mutex"
)

// A server cuts the connection of a request that is larger than its jute.maxbuffer, and says nothing. Its
// operator may have lowered that, and the client's jute_maxbuffer may not say so. So the client learns from lost
// connections.
//
// Invariants:
//   - Only a request that is larger than all that were answered on its connection can be at fault, and only
//     if the server ended the connection: a server that is slow, or silent, has not refused its size. Of those
//     that were lost with the connection, the largest is. So connections that are lost for another reason change
//     nothing, as a rule.
//   - Groups under which a connection was lost are not sent in that size again: the bound is half of it. It is less
//     than leastGroup only if connections were lost under such groups tooOften, without an answer to one as large: with groups
//     of one, thousands of callers of servers far away wait for minutes. Servers work with a limit of 512 bytes, too.
//     When a request of one caller was cut tooOften, it is refused, and so are others of at least its size:
//     each repetition would cost all callers of the session their connection.
//   - That is forgotten step by step: after a pause the bounds double. The connection may have been lost for
//     another reason, or the operator has raised the limit. The pause grows up to longestForget, so that a low
//     limit costs few connections: one in an hour in the long run. It is long for one more reason: small
//     groups are almost as fast as large ones.
type bounds struct {
	mu    mutex.Mutex[mutex.Inner]
	group atomic.Int64  // changed under mu; the size of groups; 0: as the settings say
	lone  atomic.Int64  // changed under mu; a request of one caller that is as large is refused; 0: none is
	pause time.Duration // guarded by mu; from the last lost connection until the bounds double
	next  time.Time     // guarded by mu; when they double
	grown bool          // guarded by mu; they have doubled since the last lost connection

	proven atomic.Int64  // changed under mu; the limit up to which the servers read what they were asked to: see room.go
	former int           // guarded by mu; the largest that was proven on connections before
	epoch  uint64        // guarded by mu; counts the connections
	asking chan struct{} // guarded by mu; closed when the servers have been asked; nil: no session asks
}

// proof is what one session's connection shows of sizes.
type proof struct {
	mu       mutex.Mutex[mutex.Inner]
	gen      uint64 // guarded by mu; of the connection
	answered int    // guarded by mu; the size of the largest request that was answered on it
	lost     int    // guarded by mu; the size of the largest request that was lost with it; 0: none was
	blamed   bool   // guarded by mu; a group was taken to be at fault for that
	before   int64  // guarded by mu; the size of groups before that
	few      int    // guarded by mu; how many connections in succession were lost under groups of at most leastGroup
	fewest   int    // guarded by mu; the size of the smallest of these; an answer to a request as large ends the succession
	cut      int    // guarded by mu; the size of the smallest request of one caller that was cut since one as large was answered
	cuts     int    // guarded by mu; how many such requests were cut
}

const (
	// leastRefused is the size of the smallest request that may be refused. Smaller ones are those of ordinary locks, which a
	// network that cuts connections must not end.
	leastRefused = 4 << 10

	leastGroup = 2 << 10 // smaller groups need several lost connections

	tooOften      = 3
	firstForget   = time.Minute
	longestForget = time.Hour
)

// errTooLarge is the error of a request that the servers do not read.
var errTooLarge = errs.Case(errs.ErrUnavailable, "the servers do not read requests of this size")

// most returns the size of groups. It locks nothing.
func (b *bounds) most(set *Settings) int {
	most := min(maxGroupBytes, set.maxBuffer()/2)
	if group := int(b.group.Load()); group > 0 {
		most = min(most, group)
	}
	return most
}

// limit returns the jute.maxbuffer that is known to be so.
func (b *bounds) limit(set *Settings) int {
	return min(max(trusted, int(b.proven.Load())), set.maxBuffer())
}

// nextLimit returns a limit to ask about, which may follow another one. It is limit itself if there is no larger one. The steps
// are large until the servers have refused one: callers wait for each.
func (b *bounds) nextLimit(limit int, set *Settings) int {
	times := 4
	if b.lone.Load() > 0 {
		times = 2
	}
	return min(times*limit, set.maxBuffer())
}

// limitFor returns the limit to ask about for a session with so many bytes of ephemeral znodes: the next one, or one that the
// servers had before, since then they are likely to have it still.
func (b *bounds) limitFor(bytes int, set *Settings) int {
	limit := b.nextLimit(b.limit(set), set)
	b.mu.Lock()
	former := b.former
	b.mu.Unlock()
	for limit < former && ephemerals(limit) < bytes {
		limit = min(b.nextLimit(limit, set), former)
	}
	return limit
}

// renew notes that a session has a new connection. Its server may have been started with a lower limit since the servers
// were asked: operators restart one after the other.
func (b *bounds) renew() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.epoch++
	b.former = max(b.former, int(b.proven.Load()))
	b.proven.Store(0)
}

// prove notes that the servers have read a request that shows that limit, which was sent in that epoch.
func (b *bounds) prove(limit int, epoch uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if epoch == b.epoch {
		b.proven.Store(max(b.proven.Load(), int64(limit)))
	}
}

// hoped returns the jute.maxbuffer that the servers have as far as it is known: less than the settings say only if
// they have cut connections.
func (b *bounds) hoped(set *Settings) int {
	limit := b.limit(set)
	if b.lone.Load() == 0 {
		return set.maxBuffer()
	}
	b.forget()
	for next := b.nextLimit(limit, set); next > limit; next = b.nextLimit(limit, set) {
		if lone := int(b.lone.Load()); lone > 0 && askWith(next) >= lone {
			break
		}
		limit = next
	}
	return limit
}

// forget doubles the bounds if it is time to.
func (b *bounds) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forgetLocked()
}

// forgetLocked doubles the bounds when it is time to. mu is held.
func (b *bounds) forgetLocked() {
	group := 2 * b.group.Load()
	lone := 2 * b.lone.Load()
	if group == 0 && lone == 0 || time.Now().Before(b.next) {
		return
	}
	b.next, b.grown = time.Now().Add(b.pause), true
	if group >= maxGroupBytes {
		group = 0
	}
	b.group.Store(group)
	if lone > 2*mostAsked {
		lone = 0
	}
	b.lone.Store(lone)
}

// refuses returns the error of a request of one caller that is not sent, because of its size.
func (b *bounds) refuses(size int, set *Settings) error {
	if most := set.maxBuffer(); size > most {
		return fmt.Errorf("%w: it has %d bytes, and jute_maxbuffer=%d: ask for less at once, or raise the servers' jute.maxbuffer and that key: %w", errTooLarge, size, most, driver.ErrTooLarge)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forgetLocked()
	lone := int(b.lone.Load())
	if lone == 0 || size < lone {
		return nil
	}
	return fmt.Errorf("%w: it has %d bytes, and the connection was cut %d times under requests of %d bytes, as a server does whose jute.maxbuffer is less: ask for less at once, or raise the servers' jute.maxbuffer: %w",
		errTooLarge, size, tooOften, lone, driver.ErrTooLarge)
}

// cutUnder notes that a connection was lost under requests of at most that size, of which one was a group. before was
// the size of groups. The bound is least or more.
func (b *bounds) cutUnder(before int64, size, least int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	half := int64(max(size/2, least))
	if before > 0 {
		half = min(half, before)
	}
	b.group.Store(half)
	b.waitLocked()
}

// suspect notes that a connection was lost under a request of one caller that may be too large: groups have no more than servers
// are known to read. A cut more may cost a session far away its lease.
func (b *bounds) suspect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	most := max(trusted, b.proven.Load())
	if group := b.group.Load(); group == 0 || group > most {
		b.group.Store(most)
	}
	b.waitLocked()
}

// refuse makes requests of one caller fail that are as large.
func (b *bounds) refuse(size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lone.Store(int64(size))
	if askWith(max(int(b.proven.Load()), b.former)) >= size { // an operator has lowered the limit since, and nothing shows by how much
		b.former = 0
		b.proven.Store(0)
	}
	if half, group := int64(size/2), b.group.Load(); group == 0 || group > half {
		b.group.Store(half)
	}
	b.waitLocked()
}

// waitLocked sets the time when the bounds double. mu is held.
func (b *bounds) waitLocked() {
	if b.grown || b.pause == 0 {
		b.pause, b.grown = min(max(2*b.pause, firstForget), longestForget), false
	}
	b.next = time.Now().Add(b.pause)
}

// note notes what the outcome of a transaction of a number of callers, which was sent on a connection, shows
// of sizes. p is of the session.
func (b *bounds) note(p *proof, gen uint64, group, size int, err error) {
	lost := errors.Is(err, driver.ErrConnLoss)
	if lost && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded)) || errors.Is(err, driver.ErrNotSent) {
		return // without a loss, without a cut by a server, or without a request
	}
	p.mu.Lock()
	if gen > p.gen {
		p.gen, p.answered, p.lost, p.blamed = gen, 0, 0, false
	}
	answered, largest := p.answered, lost && size > p.lost
	suspect, refuse := false, 0
	switch {
	case !lost:
		p.answered = max(answered, size)
		if size >= p.cut {
			p.cut, p.cuts = 0, 0
		}
		if size >= p.fewest {
			p.few, p.fewest = 0, 0
		}
	case size > answered && group == 1 && size >= leastRefused:
		if suspect = true; p.cuts == 0 || size < p.cut {
			p.cut = size
		}
		if p.cuts++; p.cuts >= tooOften {
			refuse, p.cut, p.cuts = p.cut, 0, 0
		}
	}
	if largest {
		p.lost = size
	}
	cut := lost && size > answered && (group > 1 && !p.blamed || largest && p.blamed)
	if cut && !p.blamed {
		p.blamed, p.before = true, b.group.Load()
		if p.few++; p.few == 1 || size < p.fewest {
			p.fewest = size
		}
	}
	most, before, least := p.lost, p.before, max(answered, leastGroup)
	switch {
	case most > leastGroup:
		p.few, p.fewest = 0, 0
	case p.few >= tooOften:
		least = answered
	}
	p.mu.Unlock()
	if cut {
		b.cutUnder(before, most, least)
	}
	if suspect {
		b.suspect()
	}
	if refuse > 0 {
		b.refuse(refuse)
	}
	if !lost && b.group.Load() > 0 {
		b.forget()
	}
}
