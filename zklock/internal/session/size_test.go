package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/zklock/driver"
)

// If a group is too large, because an estimate was wrong, its members are not at fault: each gets the answer about
// its own operations, and only one that is too large by itself gets the error.
func TestGroupThatIsTooLargeIsHalved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		c, flights := groups(t.Context(), &wg, "")
		land := busy(t, c, flights)
		const most = 1000
		large := creation("/large", strings.Repeat("x", most))
		writes := []*Write{large}
		for _, name := range strings.Split("abcdefghijklmnop", "") {
			writes = append(writes, creation("/"+name, strings.Repeat("x", 150)))
		}
		for _, w := range writes {
			c.Submit(w)
		}
		land()
		sent := 0
		for synctest.Wait(); len(flights) > 0; synctest.Wait() {
			f := <-flights
			size := 0
			for _, path := range paths(f) {
				size += len(path)
			}
			if size > most {
				f.answer <- driver.ErrTooLarge
			} else {
				sent++
				f.answer <- nil
			}
		}
		wg.Wait()
		for _, w := range writes {
			<-w.Done
			if tooLarge := errors.Is(w.Err, driver.ErrTooLarge); tooLarge != (w == large) || w.Err != nil && !tooLarge {
				t.Errorf("%.10s: %v, want ErrTooLarge for the large one only", w.Ops[0].Path, w.Err)
			}
		}
		if sent > 8 {
			t.Errorf("%d transactions were applied, want no more than 8", sent)
		}
	})
}

// Writes of random sizes share transactions, whatever their paths, data and access lists: none of these is larger
// than the bound, unless it has one member, and each member gets the answer about its own operations.
func TestGroupsOfRandomSizes(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 0))
		upTo := func(most int) int { return int(float64(most) * math.Pow(r.Float64(), 3)) }
		limit, bound := 1000+upTo(200_000), 500+upTo(200_000)
		c := committer{ctx: t.Context(), most: func() int { return bound }}
		applied := make(map[string]int)
		c.multi = func(_ context.Context, _ string, group int, ops []driver.Op) ([]driver.OpResult, error) {
			size := len(encoded(ops))
			if group > 1 && size > bound {
				t.Errorf("seed %d: a group of %d has %d bytes, at most %d are allowed", seed, group, size, bound)
			}
			if size > limit {
				return nil, driver.ErrTooLarge
			}
			for _, op := range ops {
				applied[op.Path]++
			}
			return make([]driver.OpResult, len(ops)), nil
		}
		var writes []*Write
		for i := range 1 + r.IntN(60) {
			w := &Write{Kind: "test", Done: make(chan struct{})}
			for j := range 1 + upTo(5) {
				op := driver.CreateOp(fmt.Sprintf("/%d/%d/%s", i, j, strings.Repeat("p", upTo(1500))), make([]byte, upTo(3000)), driver.Persistent, nil)
				for range upTo(120) {
					op.ACL = append(op.ACL, driver.ACL{Perms: driver.PermAll, Scheme: "ip", ID: strings.Repeat("1", 1+upTo(40))})
				}
				w.Ops = append(w.Ops, op)
			}
			writes = append(writes, w)
		}
		c.Apart(slices.Clone(writes))
		for _, w := range writes {
			<-w.Done
			large := len(encoded(w.Ops)) > limit
			if errors.Is(w.Err, driver.ErrTooLarge) != large || !large && (w.Err != nil || applied[w.Ops[0].Path] != 1) {
				t.Errorf("seed %d: a write of %d bytes was applied %d times and got %v; the limit is %d", seed, len(encoded(w.Ops)), applied[w.Ops[0].Path], w.Err, limit)
			}
		}
	}
}

// encoded returns a transaction's request as it is on the wire, without the length in front of it.
func encoded(ops []driver.Op) (b []byte) {
	number := func(n int) { b = binary.BigEndian.AppendUint32(b, uint32(n)) }
	text := func(s string) { number(len(s)); b = append(b, s...) }
	header := func(kind int) { number(kind); b = append(b, 0); number(-1) }
	number(1)  // the request's number
	number(14) // a transaction
	for _, op := range ops {
		header(int(op.Kind))
		text(op.Path)
		switch op.Kind {
		case driver.OpCreate:
			text(string(op.Data))
			number(len(op.ACL))
			for _, a := range op.ACL {
				number(int(a.Perms))
				text(a.Scheme)
				text(a.ID)
			}
			number(int(op.Mode))
		case driver.OpSet:
			text(string(op.Data))
			number(int(op.Version))
		default:
			number(int(op.Version))
		}
	}
	header(-1)
	return b
}
