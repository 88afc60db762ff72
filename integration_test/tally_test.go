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

// tally is the register that the locks of a test protect. It has a number for each name, in
// the test's own process. Other processes read and write the numbers with their fencing
// tokens. It does not know of locks. If another process writes between a holder's read and
// its write, an update is lost, and the sum is wrong.
//
// The guard decides which tokens are accepted. A writer's token must not be older than any
// token seen for the name. A reader's token must not be older than any writer's token:
// readers that hold at the same time come in any order.
type tally struct {
	guard fence.Guard

	mu       sync.Mutex
	values   map[string]uint64 // guarded by mu
	accesses int               // guarded by mu; the number of accepted accesses
	refused  int               // guarded by mu; the number of refused accesses
}

// TallyCall is a request to the register. It is exported because package rpc requires it.
type TallyCall struct {
	Sequencers []string
	Write      map[string]uint64 // the new values; empty: the access only reads
}

// TallyAnswer is the answer to a TallyCall.
type TallyAnswer struct {
	Stale  string            // why the access was refused; "" if it was not
	Values map[string]uint64 // the values of the sequencers' names
}

// Use is the method that package rpc calls for one access.
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

// serveTally runs a tally until the test is over. addr is its address for dialTally.
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
	var conns sync.WaitGroup // each ends when its process closes it or ends
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

// use makes one access. stale is the reason of a refusal, or "".
func (r remote) use(seqs []fence.Sequencer, write map[string]uint64) (values map[string]uint64, stale string, err error) {
	call := TallyCall{Write: write}
	for _, s := range seqs {
		call.Sequencers = append(call.Sequencers, s.String())
	}
	var answer TallyAnswer
	err = r.Call("tally.Use", call, &answer)
	return answer.Values, answer.Stale, err
}

// work uses the register under the lock l, in two accesses. It adds one to the value of each
// name that is held exclusively, and checks that the other values have not changed. Under a
// permit it does nothing. It returns the sequencers and the values that it wrote.
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
		return nil, nil, fmt.Errorf("%v are held with token %v: the values should be %v and are %v", l.Names(), l.Token(), before, after)
	}
	return seqs, wrote, nil
}

// refusal returns the error of a holder that the register refused.
func refusal(l *zklock.Lock, stale string) error {
	if stale == "" {
		return nil
	}
	return fmt.Errorf("the register refused %v while it is held as %v: %s", l.Names(), l.Mode(), stale)
}
