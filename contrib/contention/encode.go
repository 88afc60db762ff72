package contention

import (
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/pprof/profile"
)

// encoder makes a profile in the format of go tool pprof. A location is a function with a line,
// without an address, so the locations of several processes are the same.
type encoder struct {
	*profile.Profile
	locations map[line]*profile.Location
	functions map[function]*profile.Function
}

type function struct{ name, file string }

type line struct {
	function
	line int
}

// newEncoder begins a profile with two values. pprof shows the last one, unless it is asked for the other.
func newEncoder(count, of string) *encoder {
	values := []*profile.ValueType{{Type: count, Unit: "count"}, {Type: of, Unit: "nanoseconds"}}
	e := &encoder{&profile.Profile{SampleType: values, PeriodType: values[0], Period: 1, TimeNanos: time.Now().UnixNano()},
		make(map[line]*profile.Location), make(map[function]*profile.Function)}
	// pprof looks for functions in the program unless a mapping says that they are known.
	program := &profile.Mapping{ID: 1, HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true}
	if path, err := os.Executable(); err == nil {
		program.File = filepath.Base(path)
	}
	e.Mapping = []*profile.Mapping{program}
	return e
}

// add adds a sample. texts are its innermost frames, which are not calls, the innermost first.
func (e *encoder) add(texts []string, calls []runtime.Frame, count int64, sum time.Duration) {
	s := &profile.Sample{Value: []int64{count, int64(sum)}}
	for _, text := range texts {
		s.Location = append(s.Location, e.location(line{function{name: text}, 0}))
	}
	for _, c := range calls {
		s.Location = append(s.Location, e.location(line{function{c.Function, c.File}, c.Line}))
	}
	e.Sample = append(e.Sample, s)
}

func (e *encoder) location(at line) *profile.Location {
	if l := e.locations[at]; l != nil {
		return l
	}
	f := e.functions[at.function]
	if f == nil {
		f = &profile.Function{ID: uint64(len(e.Function)) + 1, Name: at.name, SystemName: at.name, Filename: at.file}
		e.functions[at.function] = f
		e.Function = append(e.Function, f)
	}
	l := &profile.Location{ID: uint64(len(e.Location)) + 1, Mapping: e.Mapping[0], Line: []profile.Line{{Function: f, Line: int64(at.line)}}}
	e.locations[at] = l
	e.Location = append(e.Location, l)
	return l
}

// encodeWaits makes the profile of waits.
func encodeWaits(totals map[sample]total, took time.Duration) *profile.Profile {
	e := newEncoder("contentions", "delay")
	e.DurationNanos = int64(took)
	for s, t := range totals {
		e.add(s.texts(), s.calls.calls(), t.count, t.delay)
	}
	return e.Profile
}

// texts returns the frames of a sample that are not calls, innermost first.
func (s *sample) texts() (texts []string) {
	if s.holder != "" {
		texts = append(texts, s.holder)
	}
	texts = append(texts, "lock "+s.class)
	if s.calls[0] == 0 {
		texts = append(texts, "(other call sites)")
	}
	return texts
}

// encodeHeld makes the profile of held locks.
func encodeHeld(ages map[place]age) *profile.Profile {
	e := newEncoder("locks", "held")
	for p, a := range ages {
		e.add([]string{"lock " + p.class}, p.calls.calls(), a.count, a.sum)
	}
	return e.Profile
}
