package integration_test

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/rpc"
	"sync"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// tally is the register that the locks of a test protect: a number a name, in the
// test's own process, which other processes read and write with their fencing
// tokens. It knows nothing of locks. An update that is lost, because somebody
// else wrote between a holder's read and its write, shows in the sum.
//
// The rule is the guard's. A writer's token has to be no older than any seen
// for the name. A reader's has to be no older than any writer's: readers that
// hold together come in any order.
type tally struct {
	guard fence.Guard

	mu       sync.Mutex
	values   map[string]uint64 // guarded by mu
	accesses int               // guarded by mu; let in
	refused  int               // guarded by mu; because of a newer token
}

// TallyCall is what a process asks of the register; package rpc wants it exported.
type TallyCall struct {
	Sequencers []string
	Write      map[string]uint64 // nothing: only read
}

// TallyAnswer is what it gets.
type TallyAnswer struct {
	Stale  string            // why it was refused, if it was
	Values map[string]uint64 // of the names of the sequencers
}

// Use is one access, for package rpc.
func (r *tally) Use(call TallyCall, answer *TallyAnswer) error {
	seqs, err := fence.ParseValues(call.Sequencers, "")
	if err != nil {
		return err
	}
	err = r.guard.Do(seqs, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.accesses++
		maps.Copy(r.values, call.Write)
		answer.Values = make(map[string]uint64)
		for _, s := range seqs {
			answer.Values[s.Name] = r.values[s.Name]
		}
		return nil
	})
	if errors.Is(err, fence.ErrStale) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.refused++
		answer.Stale, err = err.Error(), nil
	}
	return err
}

// serveTally runs one until the test is over. addr is for dialTally.
func serveTally(t *testing.T) (r *tally, addr string) {
	t.Helper()
	r = &tally{values: make(map[string]uint64)}
	server := rpc.NewServer()
	if err := server.RegisterName("tally", r); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup // each ends when its process closes it, or ends
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { server.ServeConn(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		conns.Wait()
	})
	return r, l.Addr().String()
}

// remote is a tally in another process.
type remote struct{ *rpc.Client }

func dialTally(addr string) (remote, error) {
	c, err := rpc.Dial("tcp", addr)
	return remote{c}, err
}

// use makes one access. stale says why it was refused, if it was.
func (r remote) use(seqs []fence.Sequencer, write map[string]uint64) (values map[string]uint64, stale string, err error) {
	call := TallyCall{Write: write}
	for _, s := range seqs {
		call.Sequencers = append(call.Sequencers, s.String())
	}
	var answer TallyAnswer
	err = r.Call("tally.Use", call, &answer)
	return answer.Values, answer.Stale, err
}

// work does what l is held for, in two accesses: it adds one to each name that is
// held for writing, and must see the same again of those held for reading. Nothing is to be done
// under a permit. It returns what a writer wrote.
func (r remote) work(l *zklock.Lock) (seqs []fence.Sequencer, wrote map[string]uint64, err error) {
	if seqs = fence.Of(l); len(seqs) == 0 {
		return nil, nil, nil
	}
	before, stale, err := r.use(seqs, nil)
	if err != nil || stale != "" {
		return nil, nil, errors.Join(err, refusal(l, stale))
	}
	for _, s := range seqs {
		if s.Mode == zklock.Exclusive {
			if wrote == nil {
				wrote = make(map[string]uint64)
			}
			wrote[s.Name] = before[s.Name] + 1
		}
	}
	after, stale, err := r.use(seqs, wrote)
	if err != nil || stale != "" {
		return nil, nil, errors.Join(err, refusal(l, stale))
	}
	maps.Copy(before, wrote)
	if !maps.Equal(before, after) {
		return nil, nil, fmt.Errorf("%v, held with token %v, should be %v and are %v", l.Names(), l.Token(), before, after)
	}
	return seqs, wrote, nil
}

// refusal is the error of a holder that the register turned down.
func refusal(l *zklock.Lock, stale string) error {
	if stale == "" {
		return nil
	}
	return fmt.Errorf("while %v is held, %v: %s", l.Names(), l.Mode(), stale)
}
