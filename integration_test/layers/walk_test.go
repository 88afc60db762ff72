package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/long"
)

// mostReturns has, by stage, how often a reader of the calls may come back to a file. A change that makes them
// fewer lowers it. Up to six more are calls that the clock decides on.
var mostReturns = map[string]int{"Acquire": 130, "Release": 36}

func TestWalkIsShort(t *testing.T) {
	long.Test(t, "the core is built once more")
	all, err := record("../..", "walker", walked())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(mostReturns) {
		t.Fatalf("%d stages were recorded, want %d", len(all), len(mostReturns))
	}
	for _, s := range all {
		most, known := mostReturns[s.name]
		if f := s.figures(); !known || f.returns > most || f.calls < 50 || f.files < 20 {
			t.Errorf("%s: %+v, want at most %d returns: go run ./integration_test/layers -walk -calls lists the calls", s.name, f, most)
		}
	}
}

// Of the goroutines that a stage has started, all calls count, and of those that were there before it, only the first's.
func TestCallsAreRecorded(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/walked\n\ngo 1.26\n",
		"low/low.go": `package low

type List[T any] struct{ all []T }

func (l *List[T]) Add(e T) { l.all = append(l.all, e) }

func Old(turn chan int) { for range turn { fromOld(); turn <- 0 } }

func fromOld() {}
`,
		"low/high.go": `package low

func Work() {
	var l List[int]
	l.Add(1)
	done := make(chan int)
	go func() { l.Add(2); close(done) }()
	<-done
	Rest()
}

func Rest() {}
`,
		"cmd/main.go": `package main

import "example.com/walked/low"

func main() {
	turn := make(chan int)
	go low.Old(turn)
	for range 2 {
		turn <- 0; <-turn
		println("mark Work")
		low.Work()
		turn <- 0; <-turn
		println("mark end")
	}
	low.Rest()
}
`,
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := record(dir, filepath.Join(dir, "cmd"), []string{"low"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"low/high.go Work", "low/low.go List.Add", "low/high.go Rest", "low/low.go List.Add"}
	if len(all) != 1 || !slices.Equal(all[0].calls, want) {
		t.Fatalf("%d stages were recorded, and the first has the calls %q, want %q", len(all), all[0].calls, want)
	}
	if f, want := all[0].figures(), (figures{calls: 4, files: 2, changes: 4, returns: 2}); f != want {
		t.Errorf("%+v, want %+v", f, want)
	}
}
