package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/once"
)

// everyPeriod is the period of the workers that call once.Every.
const everyPeriod = time.Second

// every runs slots until the worker is killed.
func (w *worker) every() error {
	c, err := zklock.Open(w.task.URL)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err = once.Every(ctx, c, w.task.Name, everyPeriod, func(ctx context.Context, slot time.Time) error {
		l, _ := zklock.FromContext(ctx)
		w.print(report{What: "begun", From: slot.Unix(), Token: l.Token()})
		if err := pause(ctx, everyPeriod/10); err != nil {
			return err
		}
		w.print(report{What: "ran", From: slot.Unix(), Token: l.Token()})
		return nil
	}, once.WithMissed(once.RunAll))
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// TestSlotsRunOnceWhenProcessesDie kills processes of a fleet in the middle of a job. Another
// process runs the slot, and then the slots that were missed by then. The job of a slot ends a
// second time only if the first process was killed after its job and before it wrote the ledger.
func TestSlotsRunOnceWhenProcessesDie(t *testing.T) {
	t.Parallel()
	const deaths, slots = 2, 9
	k := task{Role: "every", Name: "report", URL: sharedEnsemble(t).URL(rootOf(t), quick("session_timeout", "3s", "pool_max_sessions", "1"))}
	type seen struct {
		report
		process int
	}
	all := make(chan seen, 1000)
	workers := make([]*process, deaths+2)
	for i := range workers {
		workers[i] = startWorker(t, k)
		go func() {
			for r := range workers[i].reports {
				all <- seen{r, i}
			}
		}()
	}

	var first, last int64
	ended := make(map[int64][]int) // by slot, the processes that have ended its job
	killed := make(map[int]bool)   // by process
	var begun []seen
	for timeout := time.After(patience); first == 0 || last < first+slots; {
		select {
		case r := <-all:
			switch r.What {
			case "begun":
				if first == 0 {
					first = r.From
				}
				begun = append(begun, r)
				if n := len(killed); n < deaths && r.From >= first+int64(2+3*n) {
					killed[r.process] = true
					_ = workers[r.process].cmd.Process.Kill() // an error means that it has ended already
				}
			case "ran":
				ended[r.From] = append(ended[r.From], r.process)
				last = max(last, r.From)
				if len(ended[r.From]) > 2 {
					t.Fatalf("slot %d has run in the processes %v", r.From-first, ended[r.From])
				}
			default:
				t.Fatalf("process %d: %+v", r.process, r.report)
			}
		case <-timeout:
			t.Fatalf("slots %d to %d have run, and then none: %+v", first, last, begun)
		}
	}
	for slot := first; slot <= last; slot++ {
		late := len(ended[slot]) == 2 && killed[ended[slot][0]] // the kill struck between the job and the ledger
		if len(ended[slot]) != 1 && !late {
			t.Errorf("slot %d has run in the processes %v, want one", slot-first, ended[slot])
		}
	}
	slices.SortFunc(begun, func(a, b seen) int { return a.Token.Compare(b.Token) })
	text := ""
	for i, r := range begun {
		if i > 0 {
			before := begun[i-1]
			if want := before.From + 1; r.From != want && !(killed[before.process] && r.From == before.From) {
				t.Errorf("slot %d in process %d follows slot %d in process %d", r.From-first, r.process, before.From-first, before.process)
			}
		}
		text += fmt.Sprintf(" %d(%d)", r.From-first, r.process)
	}
	if len(begun) < slots+1+deaths {
		t.Errorf("%d jobs have begun, want %d: a process that was killed had not begun one", len(begun), slots+1+deaths)
	}
	t.Logf("slots, and their processes, of which %v were killed:%s", killed, text)
}
