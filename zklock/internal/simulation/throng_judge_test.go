package simulation

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// throngJudge checks what the callers of a throng get.
type throngJudge struct {
	fail func(format string, args ...any)

	mu     sync.Mutex
	stays  []*throngStay           // guarded by mu; of callers that have not begun to give back
	tokens map[string]zklock.Token // guarded by mu; the greatest of each name that excludes readers
	shared map[string]zklock.Token // guarded by mu; the greatest of the readers of each name
	tally  throngTally             // guarded by mu
}

// throngStay is a lock that a caller has.
type throngStay struct {
	wants
	lock *zklock.Lock
}

// throngTally counts what has happened.
type throngTally struct {
	Acquired, GaveUp, Crowded, Outages, Lost, Pending int
}

func (t *throngTally) add(o throngTally) {
	t.Acquired += o.Acquired
	t.GaveUp += o.GaveUp
	t.Crowded += o.Crowded
	t.Outages += o.Outages
	t.Lost += o.Lost
	t.Pending += o.Pending
}

// returned checks the end of an acquisition, late after that of its context.
func (j *throngJudge) returned(w wants, lock *zklock.Lock, err error, late time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if late > 0 {
		j.fail("%s: Acquire has returned %v %v after the end of its context: %v", w.a.Name(), token(lock), late, err)
	}
	switch {
	case err == nil:
		j.tally.Acquired++
		if errors.Is(lock.Err(), zklock.ErrReleased) {
			j.fail("%v was acquired, and its error is %v", lock.Token(), lock.Err())
		}
	case errors.Is(err, zklock.ErrTooManyWaiters):
		j.tally.Crowded++
	case errors.Is(err, zklock.ErrUnavailable):
		j.tally.Outages++
	case gaveUp(err):
		j.tally.GaveUp++
	default:
		j.fail("%s: %v", w.a.Name(), err)
	}
}

// granted checks a lock that a caller has got against those of the others.
func (j *throngJudge) granted(w wants, lock *zklock.Lock) *throngStay {
	s := &throngStay{w, lock}
	j.mu.Lock()
	defer j.mu.Unlock()
	for name, mode := range w.modes {
		taken, least := 0, w.permits
		for _, o := range j.stays {
			theirs, ok := o.modes[name]
			if !ok || !o.lock.Valid() || !lock.Valid() {
				continue
			}
			if taken, least = taken+1, min(least, o.permits); excludes(mode, theirs) {
				j.fail("%s: %v, %v of %s, and %v, %v of %s, are valid at the same time", name, mode, lock.Token(), lock.Name(), theirs, o.lock.Token(), o.lock.Name())
			}
		}
		if mode == zklock.Permit && taken >= least {
			j.fail("%s: %v and %d others are valid at the same time", name, lock.Token(), taken)
		}
		j.orderedLocked(name, mode, lock)
	}
	j.stays = append(j.stays, s)
	return s
}

// orderedLocked checks that tokens rise.
func (j *throngJudge) orderedLocked(name string, mode zklock.Mode, lock *zklock.Lock) {
	token := lock.Token()
	if mode == zklock.Permit || !lock.Valid() {
		return
	}
	if j.tokens == nil {
		j.tokens, j.shared = map[string]zklock.Token{}, map[string]zklock.Token{}
	}
	if token.Compare(j.tokens[name]) <= 0 || mode == zklock.Exclusive && token.Compare(j.shared[name]) <= 0 {
		j.fail("%s: %v of a %v was granted after a writer's %v and a reader's %v", name, token, mode, j.tokens[name], j.shared[name])
	}
	switch {
	case mode == zklock.Exclusive:
		j.tokens[name] = token
	case token.Compare(j.shared[name]) > 0:
		j.shared[name] = token
	}
}

// leaving is called before a caller gives its lock back.
func (j *throngJudge) leaving(s *throngStay) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stays = slices.DeleteFunc(j.stays, func(o *throngStay) bool { return o == s })
}

// released checks the end of a release.
func (j *throngJudge) released(s *throngStay, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err == nil:
	case errors.Is(err, zklock.ErrLost):
		j.tally.Lost++
	case errors.Is(err, zklock.ErrReleasePending):
		j.tally.Pending++
	default:
		j.fail("%s, %v: the release fails: %v", s.a.Name(), s.lock.Token(), err)
	}
}
