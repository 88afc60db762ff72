package simulation

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
)

// ask is a request of a client of the library. It is held in front of the driver until
// the controller has decided its fate.
type ask struct {
	op      faultdriver.Op
	process *process
	fate    chan fate // cap 1
}

// fate is what the controller has decided for a request: after what delay the request
// goes on, and with what fault, if any.
type fate struct {
	delay time.Duration
	fault faultdriver.Fault
}

// decide holds a request until the controller has decided.
func (p *process) decide(op faultdriver.Op) faultdriver.Fault {
	w := p.w
	a := &ask{op: op, process: p, fate: make(chan fate, 1)}
	w.mu.Lock()
	if w.open {
		w.mu.Unlock()
		return faultdriver.None()
	}
	w.pending = append(w.pending, a)
	if w.p.limit > 0 {
		w.owners[op.Session] = p
	}
	w.mu.Unlock()
	w.poke()
	f := <-a.fate
	time.Sleep(f.delay)
	return f.fault
}

// settle decides on all requests that wait for a decision.
func (w *world) settle() {
	w.mu.Lock()
	pending := w.pending
	w.pending = nil
	w.mu.Unlock()
	if len(pending) > 1 {
		slices.SortStableFunc(pending, compareAsks)
	}
	for _, a := range pending {
		if a.op.Kind == faultdriver.Multi && len(a.op.Paths) == 0 || slices.Contains(a.op.Paths, "") {
			w.model.violate("error", "client %d sends %v of %q", a.process.index, a.op.Kind, a.op.Paths)
			a.op.Paths = slices.DeleteFunc(slices.Clone(a.op.Paths), func(p string) bool { return p == "" })
		}
		f := fate{delay: w.between(time.Microsecond, time.Millisecond)}
		switch {
		case w.strikes[a.process] && creates(a.op) && slices.ContainsFunc(a.op.Paths, isLone):
			delete(w.strikes, a.process)
			f.fault = w.createLate(a)
		case w.breaking && w.rng.Float64() < w.p.rate:
			f.fault = w.strike(a)
		}
		if w.trace.verbose {
			w.trace.note("client %d: %v %v: %v", a.process.index, a.op.Kind, anonymous(a.op.Paths), f.fault)
		}
		a.fate <- f
	}
}

// compareAsks orders requests by their content, not by when they came.
func compareAsks(a, b *ask) int {
	return cmp.Or(
		cmp.Compare(a.process.index, b.process.index),
		cmp.Compare(a.op.Session, b.op.Session),
		cmp.Compare(a.op.Kind, b.op.Kind),
		slices.Compare(anonymous(a.op.Paths), anonymous(b.op.Paths)),
		cmp.Compare(a.op.Attempt, b.op.Attempt),
	)
}

// anonymous returns paths without GUIDs. Contenders that are alike otherwise differ in
// these.
func anonymous(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = withoutGUID(p)
	}
	return out
}

// registrations are the names of registered waits, which have a random part, as GUIDs do.
var registrations = regexp.MustCompile(`w1-[\w-]{20,}`)

func withoutGUID(p string) string {
	const shortest = 32
	p = registrations.ReplaceAllString(p, "w1-*")
	for start, run := 0, 0; start+run <= len(p); {
		if i := start + run; i < len(p) && strings.IndexByte("0123456789abcdef-", p[i]) >= 0 {
			run++
			continue
		}
		if run >= shortest {
			return p[:start] + "*" + p[start+run:]
		}
		start, run = start+run+1, 0
	}
	return p
}

// createdLate is the fault of a create that a server reads from an old connection, up to three
// session timeouts after it was sent.
const createdLate = "created late"

// creates reports whether a request creates contenders. Paths of sequential creates have no number
// yet.
func creates(op faultdriver.Op) bool {
	return op.Kind == faultdriver.Multi && slices.ContainsFunc(op.Paths, func(p string) bool {
		last := p[len(p)-1]
		return withoutGUID(p) != p && (last < '0' || last > '9')
	})
}

// Faults of single requests. Each keeps the client waiting or makes the request fail:
// with an unknown outcome or, when the server throttles, without any effect.
var requestFaults = []string{
	"request dropped", "reply lost", "applied late", createdLate, "request vanished", "reply vanished", "request delayed", "reply delayed", "throttled",
}

// strike chooses a fault for a request, and records it.
func (w *world) strike(a *ask) faultdriver.Fault {
	kind := requestFaults[w.rng.IntN(len(requestFaults))]
	if creates(a.op) && w.rng.IntN(3) == 0 {
		return w.createLate(a)
	}
	var f faultdriver.Fault
	switch kind {
	case "request dropped":
		f = faultdriver.Drop()
	case "reply lost":
		f = faultdriver.LoseReply()
	case "applied late", createdLate:
		kind = "applied late" // it creates nothing
		d := w.between(time.Millisecond, simTimeout/2)
		w.late = corekit.Later(w.late, time.Now().Add(d+10*time.Millisecond))
		f = faultdriver.LateAfter(d)
	case "request vanished": // no error reports that
		f = faultdriver.Hang()
	case "reply vanished": // no error reports that
		f = faultdriver.HangReply()
	case "request delayed":
		f = faultdriver.Delay(w.between(time.Millisecond, simTimeout/2))
	case "reply delayed":
		f = faultdriver.DelayReply(w.between(time.Millisecond, simTimeout/2))
		// A server sends events and replies in one order, and a grant may rely on that for the watches of the parent and
		// of the client's own node: seed 1796068818429. The event of another's node only wakes a waiter.
		if a.op.Kind == faultdriver.Watch && w.rng.IntN(2) == 0 && withoutGUID(a.op.Paths[0]) != a.op.Paths[0] && !own(a.op) {
			f = faultdriver.DelayEvent(w.between(time.Millisecond, simTimeout/2))
		}
	case "throttled":
		f = faultdriver.Fail(driver.ErrThrottled)
	}
	w.broke(kind, a.process, fmt.Sprintf("%v %s: %v", a.op.Kind, anonymous(a.op.Paths), f))
	return f
}

// own reports whether an operation is on a contender of its session, whose GUID begins with the session's id.
func own(op faultdriver.Op) bool {
	id := fmt.Sprintf("%016x", uint64(op.Session))
	return strings.Contains(strings.ReplaceAll(op.Paths[0], "-", ""), "_c_"+id)
}

// createLate has a request that creates contenders applied up to three session timeouts later.
func (w *world) createLate(a *ask) faultdriver.Fault {
	d := w.between(time.Microsecond, 3*simTimeout)
	w.late = corekit.Later(w.late, time.Now().Add(d+10*time.Millisecond))
	f := faultdriver.LateAfter(d)
	w.broke(createdLate, a.process, fmt.Sprintf("%v %s: %v", a.op.Kind, anonymous(a.op.Paths), f))
	return f
}

// trace records what a run did, to be printed if the run fails. Its lines are formatted
// only then.
type trace struct {
	began   time.Time
	verbose bool // it records everything, not only the controller's choices

	mu    sync.Mutex
	lines []traced // guarded by mu
	mark  int      // guarded by mu; the lines before it stay where they are
}

type traced struct {
	at     time.Duration
	format string
	args   []any
}

func (t *trace) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, traced{time.Since(t.began), format, args})
}

// settle sorts what goroutines have noted since setMark, while the controller waited for
// them. So the order of notes of one instant does not depend on how the goroutines ran.
func (t *trace) settle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.verbose {
		slices.SortStableFunc(t.lines[t.mark:], func(a, b traced) int {
			return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.String(), b.String()))
		})
	}
	t.mark = len(t.lines)
}

// setMark makes the lines that there are stay where they are. The controller's own lines
// are in order already.
func (t *trace) setMark() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mark = len(t.lines)
}

func (t *trace) String() string {
	var b strings.Builder
	for _, l := range t.lines {
		b.WriteString(l.String())
		b.WriteByte('\n')
	}
	return b.String()
}

func (l traced) String() string {
	return fmt.Sprintf("%12.6fs  %s", l.at.Seconds(), fmt.Sprintf(l.format, l.args...))
}
