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

// Injector decides which fault strikes which operation. One [Wrap] asks its injector about one
// operation at a time, in the order of Op.Seq. An Injector that several of them share must be
// safe for concurrent use; the injectors of this package are. An Injector must return at once,
// since all other operations wait for it. It must not use the sessions that it injects faults
// into, which would deadlock.
type Injector interface {
	// Inject returns the fault for an operation; None lets it pass. It is called once for
	// each operation, before the operation is executed.
	Inject(op Op) Fault

	// String describes the injector, in such detail that a run can be repeated from it.
	String() string
}

// If asks inj only about the operations that cond accepts. name describes cond when the
// injector is printed. If panics if cond or inj is nil.
func If(name string, cond func(Op) bool, inj Injector) Injector {
	if cond == nil || inj == nil {
		panic("faultdriver: If with a nil argument: pass a condition and an injector")
	}
	return &filter{"if", name, cond, inj}
}

// On asks inj only about operations of one kind.
func On(kind Kind, inj Injector) Injector {
	return &filter{"on", kind.String(), func(op Op) bool { return op.Kind == kind }, inj}
}

// Writes asks inj only about operations that write: Create, Delete, Set and Multi.
func Writes(inj Injector) Injector {
	return &filter{"writes", "", func(op Op) bool { return op.Kind.Writes() }, inj}
}

// Path asks inj only about operations with a path that matches pattern, as path.Match does. A
// pattern that ends in "/..." is different: it matches the path before that, which is taken
// literally, and every path below it. A malformed pattern matches only the path that is equal
// to it.
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

// filter asks another injector only about some operations.
type filter struct {
	// name and arg describe it when it is printed; arg may be empty.
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

// Nth lets only the n-th fault of inj strike, counted from 1.
func Nth(n int, inj Injector) Injector {
	return &window{name: "nth", n: n, first: n, last: n, inj: inj}
}

// First lets only the first n faults of inj strike.
func First(n int, inj Injector) Injector {
	return &window{name: "first", n: n, first: 1, last: n, inj: inj}
}

// Once lets only the first fault of inj strike.
func Once(inj Injector) Injector { return First(1, inj) }

// After lets all faults of inj strike, except for the first n.
func After(n int, inj Injector) Injector {
	return &window{name: "after", n: n, first: n + 1, last: math.MaxInt, inj: inj}
}

// window lets only those faults of inj strike that have the numbers first to last.
type window struct {
	// name and n describe it when it is printed.
	name string
	n    int

	first, last int
	inj         Injector

	mu   sync.Mutex
	seen int // guarded by mu; number of faults of inj so far
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

// Any asks injs in order, and strikes with the first fault that one of them returns. The
// injectors after that one are not asked.
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

// Random strikes each operation with probability rate. It asks one of injs, chosen at random;
// these are normally faults. Operations that begin in the same order meet the same faults. So
// the seed that a run prints repeats it, as far as its operations begin in the same order
// again.
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

// pick always draws two numbers, even if the first one means that no fault strikes. So with
// the same seed, all operations that are struck at one rate are struck at a higher rate, too.
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

// Script strikes the first operation with the first fault, the second with the second, and so
// on. When the faults are used up, all operations pass. [None] lets an operation pass. Use it
// inside [On] or [Path] to script only some operations.
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
