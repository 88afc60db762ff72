package locktest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/zklock/go-zklock/contrib/locktest/worker"
)

// The deliberate bugs of a worker. Each is one that a lock library could have.
const (
	doubleGrant   = "double grant"   // every fifth acquisition is granted without a look at the queue
	lostRelease   = "lost release"   // every fifth release is not sent
	fallingToken  = "falling token"  // every fifth token is older than those before
	crash         = "crash"          // the process ends at every fifth release
	lateLoss      = "late loss"      // the end of a session is not noticed
	noTokens      = "no tokens"      // not a bug: the library has no tokens
	excludesNever = "excludes never" // each acquisition is granted at once, with a token that rises

	secretReader = "secret reader" // every fifth shared acquisition is granted without a look at the queue
	extraPermit  = "extra permit"  // there is a permit too many

	findsDeadlocks = "finds deadlocks" // not a bug: one wait of a circle fails
	failsAll       = "fails all"       // all waits of a circle fail
	failsOthers    = "fails others"    // one wait of a circle fails, and every fifth wait for a second lock

	earlyLoss  = "early loss"  // not a bug: the worker reports the loss of the first hold before its grant
	manyLosses = "many losses" // not a bug: the worker reports each loss very often
	strayGrant = "stray grant" // the worker grants what nothing has asked for
	grantTwice = "grant twice" // the worker grants one acquisition twice
	earlyHeld  = "early held"  // the worker says that it holds what it has not granted
	readyTwice = "ready twice" // the worker says a second time that it is ready
)

// says are the lines that a worker with a bug of the protocol writes before its first grant.
var says = map[string]worker.Message{
	earlyLoss:  {Op: worker.Lost},
	strayGrant: {Op: worker.Granted, ID: 1 << 20},
	grantTwice: {Op: worker.Granted},
	earlyHeld:  {Op: worker.Held},
	readyTwice: {Op: worker.Ready},
}

// say writes a line of the worker, some times at once.
func say(m worker.Message, times int) {
	line, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.Write(bytes.Repeat(append(line, '\n'), times)) // if that fails, locktest has gone
}

// buggy is a library with a bug.
type buggy struct {
	worker.Library
	bug   string
	calls atomic.Int64
	token atomic.Int64 // the newest that was seen
}

func (b *buggy) Acquire(ctx context.Context, name string) (worker.Hold, error) {
	n := b.calls.Add(1)
	if b.bug == excludesNever || b.bug == doubleGrant && n%5 == 0 && b.token.Load() > 0 {
		return &buggyHold{library: b, number: n, token: b.token.Add(1)}, nil
	}
	if b.bug == secretReader && n%5 == 0 && worker.Request(ctx).Shared && b.token.Load() > 0 {
		return &buggyHold{library: b, number: n, token: b.token.Load()}, nil
	}
	if b.bug == failsOthers && n%5 == 0 && len(worker.Holding(ctx)) > 0 {
		return nil, errDeadlock
	}
	h, err := b.Library.Acquire(ctx, name)
	if err != nil {
		return nil, err
	}
	asked := worker.Request(ctx)
	if m, ok := says[b.bug]; ok && n == 1 {
		m.ID = cmp.Or(m.ID, asked.ID)
		say(m, 1)
	}
	token := h.(*toyHold).token
	b.token.Store(token)
	if b.bug == fallingToken && n%5 == 0 {
		token -= 1 << 20
	}
	return &buggyHold{Hold: h, library: b, number: n, token: token, id: asked.ID}, nil
}

// toyHoldOf is the toy's part of a hold.
func toyHoldOf(h worker.Hold) *toyHold {
	if b, ok := h.(*buggyHold); ok {
		h = b.Hold
	}
	return h.(*toyHold)
}

// buggyHold is a hold of a library with a bug. Without a Hold it was never granted.
type buggyHold struct {
	worker.Hold
	library *buggy
	number  int64
	token   int64
	id      int // of the acquisition
}

// isLost reports whether the worker has reported a loss that there was not.
func (h *buggyHold) isLost() bool {
	return h.library.bug == manyLosses || h.library.bug == earlyLoss && h.number == 1
}

func (h *buggyHold) Token() string {
	if h.library.bug == noTokens {
		return ""
	}
	return strconv.FormatInt(h.token, 10)
}

func (h *buggyHold) Held() bool {
	return h.Hold == nil || h.library.bug == lateLoss || h.Hold.Held() && !h.isLost()
}

func (h *buggyHold) Lost() <-chan struct{} {
	if h.Hold == nil || h.library.bug == lateLoss {
		return nil
	}
	if h.library.bug == manyLosses {
		say(worker.Message{Op: worker.Lost, ID: h.id}, 40)
	}
	return h.Hold.Lost()
}

func (h *buggyHold) Release(ctx context.Context) error {
	if h.library.bug == crash && h.number%5 == 0 {
		os.Exit(3)
	}
	if h.Hold == nil || h.library.bug == lostRelease && h.number%5 == 0 {
		return nil
	}
	return h.Hold.Release(ctx)
}
