package integration_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/once"
)

// everyPeriod is the period of the workers that call once.Every.
const everyPeriod = time.Second

// every runs slots until the worker is killed. A job ends when the parent process writes a line.
func (w *worker) every() error {
	c, err := zklock.Open(w.task.URL)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stdin := bufio.NewReader(os.Stdin)
	err = once.Every(ctx, c, w.task.Name, everyPeriod, func(ctx context.Context, slot time.Time) error {
		l, _ := zklock.FromContext(ctx)
		w.print(report{What: "begun", From: slot.Unix(), Token: l.Token()})
		if _, err := stdin.ReadString('\n'); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
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
// process runs the slot, and then the slots that were missed by then. The job of each slot ends once.
func TestSlotsRunOnceWhenProcessesDie(t *testing.T) {
	t.Parallel()
	const deaths, slots = 2, 9
	k := task{Role: "every", Name: "report", URL: sharedEnsemble(t).URL(rootOf(t), quick("pool_max_sessions", "1"))}
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

	var first int64
	ended := make(map[int64][]int) // by slot, the processes that have ended its job
	killed := make(map[int]bool)   // by process
	var begun []seen
	allRan := func() bool { // the reports of two processes may arrive in another order
		for slot := first; slot <= first+slots; slot++ {
			if len(ended[slot]) == 0 {
				return false
			}
		}
		return true
	}
	for timeout := time.After(patience); !allRan(); {
		select {
		case r := <-all:
			switch r.What {
			case "begun":
				if len(begun) == 0 {
					first = r.From
				} else {
					before := begun[len(begun)-1]
					want := before.From + 1
					if killed[before.process] {
						want = before.From
					}
					if r.From != want || r.Token.Compare(before.Token) <= 0 {
						t.Fatalf("slot %d in process %d, with token %v, follows slot %d in process %d, with token %v; of the processes, %v were killed",
							r.From-first, r.process, r.Token, before.From-first, before.process, before.Token, killed)
					}
				}
				begun = append(begun, r)
				if n := len(killed); n < deaths && r.From >= first+int64(2+3*n) {
					killed[r.process] = true
					if err := workers[r.process].cmd.Process.Kill(); err != nil {
						t.Fatal(err)
					}
				} else {
					workers[r.process].start() // the job ends
				}
			case "ran":
				ended[r.From] = append(ended[r.From], r.process)
			default:
				t.Fatalf("process %d: %+v", r.process, r.report)
			}
		case <-timeout:
			t.Fatalf("slots, and the processes that have run them: %v, want all from %d to %d", ended, first, first+slots)
		}
	}
	for slot, by := range ended {
		if len(by) != 1 {
			t.Errorf("slot %d has run in the processes %v, want one", slot-first, by)
		}
	}
	text := ""
	for _, r := range begun {
		text += fmt.Sprintf(" %d(%d)", r.From-first, r.process)
	}
	t.Logf("slots, and their processes, of which %v were killed:%s", killed, text)
}
