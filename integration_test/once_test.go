package integration_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
)

// TestSlotsRunOnce runs short jobs in processes whose clocks differ and that are killed at
// random. Each slot runs once. The exceptions are counted and named: a process that was killed,
// or lost its lock, between its job and the ledger. ZKLOCK_SLOTS=500 runs 20 processes with that
// many slots, and with clocks that differ by up to a minute.
func TestSlotsRunOnce(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	const session = 3 * time.Second
	processes, slots, apart, deaths := 4, long.Count(t, "ZKLOCK_SLOTS", 10, 20), 3*time.Second, 0.05
	if os.Getenv("ZKLOCK_SLOTS") != "" {
		processes, apart, deaths = 20, time.Minute, 0.02
	}
	zk := ensemble.Start(t, ensemble.Config{})
	k := onceTask{Slots: slots, Every: 60 * time.Millisecond, Deaths: deaths, Journal: filepath.Join(t.TempDir(), "journal"),
		Began: time.Now().Add(apart).UnixNano()} // now, for a process whose clock is ahead by that much
	if err := os.WriteFile(k.Journal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, task: k, url: zk.URL(rootOf(t), quick("session_timeout", session.String(), "pool_max_sessions", "1")), apart: apart, processes: make([]*life, processes)}
	ended := f.run()
	h := readHistory(t, k.Journal)
	h.check(t, slots)
	t.Logf("%d processes, %d lives, %d ended by kills from outside; clocks up to %v apart", processes, ended, f.killed, apart)
	t.Logf("%s\n%v", h.summary(), zk.Settings(session, processes, "job"))
	if last := len(h.of[slots-1]); last == 0 {
		t.Error("the last slot has not run")
	}
	atTheWorstMoment := slices.ContainsFunc(h.runs, func(r *oneRun) bool { return r.ended && r.last && !r.done })
	if os.Getenv("ZKLOCK_SLOTS") != "" && !atTheWorstMoment {
		t.Error("no process was killed between its job and the ledger: the run shows nothing")
	}
}

// life is one life of a process of the fleet.
type life struct {
	*process
	n     int // its number
	ahead time.Duration
	over  chan bool // receives whether the process has run all slots
}

// fleet is the processes that run slots.
type fleet struct {
	t         *testing.T
	task      onceTask
	url       string
	apart     time.Duration
	processes []*life
	killed    int // by the test
}

// start starts a process, again if it has lived before.
func (f *fleet) start(i int) {
	l := &life{over: make(chan bool, 1), ahead: time.Duration(i%4) * f.apart / 3}
	k := f.task
	if before := f.processes[i]; before != nil {
		l.n, l.ahead = before.n+1, before.ahead
		k.From = readHistory(f.t, k.Journal).next(i)
	}
	k.Process, k.Life, k.Ahead = i, l.n, l.ahead
	l.process = startWorker(f.t, task{Role: "once", Name: "job", URL: f.url, Once: &k})
	f.processes[i] = l
	go func() {
		done := false
		for r := range l.reports {
			if r.What == "error" {
				f.t.Errorf("process %d: %s", i, r.Err)
				done = true
			}
			done = done || r.What == "done"
		}
		l.over <- done
	}()
}

// run runs the processes until each has run all slots. It kills them at random, and starts those
// that have died again. It returns how many lives there were.
func (f *fleet) run() (lives int) {
	for i := range f.processes {
		f.start(i)
		lives++
	}
	working := len(f.processes)
	over := make([]bool, working)
	kill := time.NewTimer(time.Second)
	defer kill.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for working > 0 {
		select {
		case <-kill.C:
			kill.Reset(rand.N(6 * time.Second))
			if i := rand.IntN(len(over)); !over[i] {
				f.killed++
				_ = f.processes[i].cmd.Process.Kill() // an error means that it has ended already
			}
		case <-look.C:
		}
		for i, p := range f.processes {
			if over[i] {
				continue
			}
			select {
			case done := <-p.over:
				if over[i] = done; done {
					working--
					continue
				}
				f.start(i)
				lives++
			default:
			}
		}
	}
	return lives
}

// oneRun is one call of the job.
type oneRun struct {
	process, life, slot int
	token               zklock.Token
	ended, done         bool
	failed              string // the error of Do
	lost                bool   // that error said that the lock was lost, or that the outcome is not known
	last                bool   // the process has done nothing after it: it was killed
}

// history is what the journal says.
type history struct {
	runs []*oneRun         // by token
	of   map[int][]*oneRun // by slot; those that have done their work
	from map[int]int       // by process, the slot after the last that it need not run again
}

// next returns the slot after the last one that a process has run, or has found to be done.
func (h *history) next(process int) int { return h.from[process] }

// readHistory reads a journal.
func readHistory(t *testing.T, name string) *history {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	h := &history{of: make(map[int][]*oneRun), from: make(map[int]int)}
	now := make(map[[2]int]*oneRun) // the run of each life that has begun last
	for line := range bytes.Lines(text) {
		var what, token, detail string
		var process, life, slot int
		if _, err := fmt.Sscanf(string(line), "%s %d %d %d %s %q", &what, &process, &life, &slot, &token, &detail); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		who := [2]int{process, life}
		if r := now[who]; r != nil {
			r.last = false
		}
		switch what {
		case onceStart:
			parsed, err := zklock.ParseToken(token)
			if err != nil {
				t.Fatal(err)
			}
			r := &oneRun{process: process, life: life, slot: slot, token: parsed, last: true}
			now[who] = r
			h.runs = append(h.runs, r)
		case onceEnd:
			now[who].ended, now[who].last = true, true
		case onceDone:
			now[who].done = true
			h.from[process] = max(h.from[process], slot+1)
		case oncePass:
			h.from[process] = max(h.from[process], slot+1)
		case onceLost, onceFail: // a later call for the slot may fail before it runs the job
			if r := now[who]; r != nil && r.slot == slot && !r.done && !r.lost {
				r.failed, r.lost = detail, what == onceLost
			}
		}
	}
	slices.SortStableFunc(h.runs, func(a, b *oneRun) int { return a.token.Compare(b.token) })
	for _, r := range h.runs {
		if r.ended {
			h.of[r.slot] = append(h.of[r.slot], r)
		}
	}
	return h
}

// check fails the test if a slot ran never or more than once, and no killed process or lost lock
// explains it.
func (h *history) check(t *testing.T, slots int) {
	t.Helper()
	settled := -1 // the highest slot that is recorded for certain
	for i, r := range h.runs {
		if i > 0 && h.runs[i-1].token == r.token {
			t.Errorf("two runs have the token %v: %+v and %+v", r.token, *h.runs[i-1], *r)
		}
		if r.slot <= settled {
			t.Errorf("slot %d has run, in process %d with the token %v, after slot %d was done", r.slot, r.process, r.token, settled)
		}
		if r.done {
			settled = r.slot
		}
		if !r.done && !r.last && !r.lost {
			t.Errorf("a run has ended without a reason that counts: %+v", *r)
		}
	}
	for slot := range slots {
		if len(h.of[slot]) == 0 {
			t.Errorf("slot %d has not run", slot)
		}
		for _, r := range h.of[slot][:max(0, len(h.of[slot])-1)] {
			if r.done || !r.last && !r.lost {
				t.Errorf("slot %d has run again after %+v", slot, *r)
			}
		}
	}
}

// summary counts and names the slots that have run more than once.
func (h *history) summary() string {
	var text strings.Builder
	var inJob, more, lost int
	for _, r := range h.runs {
		if !r.ended {
			inJob++
		}
	}
	for slot, runs := range h.of {
		if len(runs) > 1 {
			more++
			fmt.Fprintf(&text, "\nslot %d has run %d times:", slot, len(runs))
			for _, r := range runs {
				switch {
				case r.done:
					fmt.Fprintf(&text, " in process %d, where it was recorded;", r.process)
				case r.failed != "":
					if r.lost {
						lost++
					}
					fmt.Fprintf(&text, " in process %d, which failed: %s;", r.process, r.failed)
				default:
					fmt.Fprintf(&text, " in process %d, which was killed after the job;", r.process)
				}
			}
		}
	}
	return fmt.Sprintf("%d runs of %d slots; %d were ended in the middle of the job; %d slots have done their work more than once, %d of the runs before lost their lock%s", len(h.runs), len(h.of), inJob, more, lost, &text)
}
