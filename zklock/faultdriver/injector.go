package faultdriver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
)

// Injector decides what goes wrong with which operation. One [Wrap] asks for
// one operation at a time, in the order of Op.Seq; an Injector that several
// share must be safe for concurrent use, as those of this package are. It must
// return at once, and must not use the sessions that it injects into.
type Injector interface {
	// Inject is called once before each operation; None lets it pass.
	Inject(op Op) Fault

	// String describes the injector so that a run can be repeated from it.
	String() string
}

// If lets inj see only the operations for which cond holds. name is what cond
// is printed as.
func If(name string, cond func(Op) bool, inj Injector) Injector {
	return &filter{"if", name, cond, inj}
}

// On lets inj see only operations of one kind.
func On(kind Kind, inj Injector) Injector {
	return &filter{"on", kind.String(), func(op Op) bool { return op.Kind == kind }, inj}
}

// Writes lets inj see only operations that write: Create, Delete, Set, Multi.
func Writes(inj Injector) Injector {
	return &filter{"writes", "", func(op Op) bool { return op.Kind.Writes() }, inj}
}

// Session lets inj see only operations of the session with that id.
func Session(id int64, inj Injector) Injector {
	return &filter{"session", fmt.Sprintf("%#x", uint64(id)), func(op Op) bool { return op.Session == id }, inj}
}

// Path lets inj see only operations with a path that matches pattern, in the
// terms of path.Match; one that ends in "/..." matches what is before that,
// taken literally, and everything below it. A malformed pattern matches
// nothing but itself.
func Path(pattern string, inj Injector) Injector {
	cond := func(op Op) bool {
		return slices.ContainsFunc(op.Paths, func(p string) bool { return matches(pattern, p) })
	}
	return &filter{"path", pattern, cond, inj}
}

func matches(pattern, p string) bool {
	if top, deep := strings.CutSuffix(pattern, "/..."); deep {
		return p == top || strings.HasPrefix(p, top+"/")
	}
	matched, err := path.Match(pattern, p)
	return matched || err != nil && p == pattern
}

// filter lets another injector see only some operations.
type filter struct {
	// name and arg are what it is printed as; arg may be empty.
	name, arg string

	cond func(Op) bool
	inj  Injector
}

func (f *filter) Inject(op Op) Fault {
	if !f.cond(op) {
		return None()
	}
	return f.inj.Inject(op)
}

func (f *filter) String() string {
	if f.arg == "" {
		return f.name + "(" + f.inj.String() + ")"
	}
	return f.name + "(" + f.arg + ", " + f.inj.String() + ")"
}

// Nth lets the n-th fault of inj strike, counted from 1, and no other.
func Nth(n int, inj Injector) Injector {
	return &window{name: "nth", n: n, first: n, last: n, inj: inj}
}

// First lets the first n faults of inj strike.
func First(n int, inj Injector) Injector {
	return &window{name: "first", n: n, first: 1, last: n, inj: inj}
}

// Once lets the first fault of inj strike.
func Once(inj Injector) Injector { return First(1, inj) }

// After lets all faults of inj strike but the first n.
func After(n int, inj Injector) Injector {
	return &window{name: "after", n: n, first: n + 1, last: math.MaxInt, inj: inj}
}

// window lets through the faults of inj numbered from first to last.
type window struct {
	// name and n are what it is printed as.
	name string
	n    int

	first, last int
	inj         Injector

	mu   sync.Mutex
	seen int // guarded by mu; faults of inj so far
}

func (w *window) Inject(op Op) Fault {
	fault := w.inj.Inject(op)
	if fault.on(op.Kind).IsNone() {
		return None()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
	if w.seen < w.first || w.seen > w.last {
		return None()
	}
	return fault
}

func (w *window) String() string { return fmt.Sprintf("%s(%d, %s)", w.name, w.n, w.inj) }

// Any strikes with the first fault that one of injs has for the operation.
// Those behind it are not asked.
func Any(injs ...Injector) Injector { return anyOf(injs) }

type anyOf []Injector

func (a anyOf) Inject(op Op) Fault {
	for _, inj := range a {
		if fault := inj.Inject(op); !fault.IsNone() {
			return fault
		}
	}
	return None()
}

func (a anyOf) String() string { return "any(" + join(a) + ")" }

// All strikes only if each of injs has a fault for the operation, with the
// fault of the last one. All of them are asked.
func All(injs ...Injector) Injector { return allOf(injs) }

type allOf []Injector

func (a allOf) Inject(op Op) Fault {
	var last Fault
	every := true
	for _, inj := range a {
		last = inj.Inject(op)
		every = every && !last.IsNone()
	}
	if !every {
		return None()
	}
	return last
}

func (a allOf) String() string { return "all(" + join(a) + ")" }

// Random strikes each operation with probability rate, with one of injs (by
// rights faults) at random. Operations begun in the same order meet the same
// faults, so a run can be repeated from the seed it prints, as far as its
// operations come in the same order again.
func Random(seed uint64, rate float64, injs ...Injector) Injector {
	return &random{seed: seed, rate: rate, injs: injs, rng: rand.New(rand.NewPCG(seed, 0))}
}

type random struct {
	seed uint64
	rate float64
	injs []Injector

	mu  sync.Mutex
	rng *rand.Rand // guarded by mu
}

func (r *random) Inject(op Op) Fault {
	inj := r.pick()
	if inj == nil {
		return None()
	}
	return inj.Inject(op)
}

// pick draws two numbers whatever comes of the first, so that the schedule of
// one rate is part of that of a higher one.
func (r *random) pick() Injector {
	r.mu.Lock()
	defer r.mu.Unlock()
	strike, which := r.rng.Float64() < r.rate, r.rng.Uint64()
	if !strike || len(r.injs) == 0 {
		return nil
	}
	return r.injs[which%uint64(len(r.injs))]
}

func (r *random) String() string {
	return fmt.Sprintf("random(seed=%d, rate=%v, %s)", r.seed, r.rate, join(r.injs))
}

// Script strikes the first operation with the first fault, the second with the
// second, and so on; then nothing more. [None] lets an operation pass. Narrow
// it with [On] or [Path] to script only some operations.
func Script(faults ...Fault) Injector { return &script{faults: faults} }

type script struct {
	faults []Fault

	mu   sync.Mutex
	next int // guarded by mu
}

func (s *script) Inject(Op) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == len(s.faults) {
		return None()
	}
	s.next++
	return s.faults[s.next-1]
}

func (s *script) String() string { return "script(" + join(s.faults) + ")" }

func join[I Injector](injs []I) string {
	texts := make([]string, len(injs))
	for i, inj := range injs {
		texts[i] = inj.String()
	}
	return strings.Join(texts, ", ")
}
