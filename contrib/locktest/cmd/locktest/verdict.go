package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
)

// judgeLimit is how long the linearizability checker may take.
const judgeLimit = 2 * time.Minute

// mostMistakes is how many holds with mistakes are printed.
const mostMistakes = 40

// verdict asks both judges and prints the table.
func verdict(title string, events []history.Event, logs *judge.Servers, silent bool) (passed bool, err error) {
	f := judge.Measure(events)
	o, known := judge.Porcupine(judge.Holds(events), judgeLimit)
	fmt.Print(f.Table(title))
	if mistakes := judge.Mistakes(events); len(mistakes) > 0 {
		fmt.Println("\nmistakes, by hold (-history FILE, then -check FILE -explain ID draws one):")
		for _, m := range mistakes[:min(len(mistakes), mostMistakes)] {
			fmt.Println(m)
		}
		if more := len(mistakes) - mostMistakes; more > 0 {
			fmt.Printf("and of %d holds more\n", more)
		}
	}
	if by := judge.Overlapped(events); len(by) > 1 {
		for _, command := range slices.Sorted(maps.Keys(by)) {
			fmt.Printf("\noverlaps of a hold of %s: %d\n", command, by[command])
		}
	}
	switch {
	case !known && f.Passed():
		return false, fmt.Errorf("porcupine has no answer after %v, so the run proves nothing: make it shorter", judgeLimit)
	case !known:
		fmt.Printf("\nporcupine has no answer after %v\n", judgeLimit)
	case !o.Agrees(f.Verdict):
		return false, fmt.Errorf("the judges differ: porcupine says %+v: this is a mistake of locktest", o)
	default:
		fmt.Println("\nporcupine agrees")
	}
	if slices.ContainsFunc(events, func(e history.Event) bool { return e.Reason == history.HolderKilled }) {
		fmt.Println("\n" + successions(events))
	}
	passed = f.Passed()
	if logs != nil {
		fmt.Print("\n" + logs.Table(title))
		for _, mistake := range logs.Mistakes {
			fmt.Println(mistake)
		}
		for _, contender := range logs.Stuck {
			fmt.Println(contender)
		}
		passed = passed && (logs.Passed() || logs.Judged == 0) // another library may have queues of another form
	}
	if s := judge.MeasureSilence(events); silent {
		fmt.Printf("\n%d of %d locks lost, %d new sessions, longest wait %v, %d acquisitions failed in the faults\n", s.Lost, s.Held, s.Sessions, s.Longest.Round(time.Millisecond), s.Failed)
	}
	if slices.ContainsFunc(events, func(e history.Event) bool { return e.Holding != 0 }) {
		d := judge.MeasureDeadlocks(events)
		fmt.Print("\n" + d.Table(title))
		passed = passed && d.Passed()
	}
	if passed && !slices.ContainsFunc(events, func(e history.Event) bool { return e.Kind == history.Settled }) {
		return false, errors.New("the history lacks the end of its run, so that nothing was found proves nothing")
	}
	return passed, nil
}

// judgeLogs judges a history by the logs of servers; nil: there are none, or the run did not learn of the workers' sessions.
func judgeLogs(events []history.Event, dirs []string) (*judge.Servers, error) {
	if len(dirs) == 0 || !slices.ContainsFunc(events, func(e history.Event) bool { return e.Kind == history.Session }) {
		return nil, nil
	}
	stays, err := judge.ReadStays(dirs)
	if err != nil {
		return nil, fmt.Errorf("the servers' logs: %w", err)
	}
	s := judge.JudgeServers(events, stays)
	return &s, nil
}
