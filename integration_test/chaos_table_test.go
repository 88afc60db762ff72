//go:build linux

package integration_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// maxFindings is the number of findings about one name that are printed. The table counts
// all of them.
const maxFindings = 5

// row has the figures of one kind of fault.
type row struct {
	injected, lost, overlaps, control int
	recovery, election, turn          time.Duration
}

// judge reads the journals, prints the table, and fails the test if it finds something
// wrong.
func (c *chaos) judge(registers *registers, znode string) {
	byName := make(map[string][]entry)
	rows := make(map[string]*row)
	for _, s := range c.strokes {
		if rows[s.kind] == nil {
			rows[s.kind] = &row{}
		}
		rows[s.kind].injected++
		rows[s.kind].election = max(rows[s.kind].election, s.election)
	}
	during := func(at int64) *row { // the kind of the last fault before that time
		i := sort.Search(len(c.strokes), func(i int) bool { return c.strokes[i].struck > at })
		if i == 0 {
			return &row{}
		}
		return rows[c.strokes[i-1].kind]
	}
	counts := make(map[string]int)
	goroutines := make(map[[2]int][]entry) // the turns by worker and goroutine
	for _, v := range c.victims {
		for _, text := range v.violations {
			c.t.Errorf("worker %d: %s", v.index, text)
		}
		for what, n := range v.newest.Counts {
			counts[what] += n
		}
		entries, err := readJournal(v.process.task.Log)
		if err != nil {
			c.t.Error(err)
		}
		for _, e := range entries {
			byName[e.Name] = append(byName[e.Name], e)
			if e.Ended == 0 {
				continue
			}
			if e.Lost != 0 {
				during(e.Lost).lost++
			} else if !strings.HasPrefix(e.Name, "long-") {
				g := [2]int{e.Worker, e.Goroutine}
				goroutines[g] = append(goroutines[g], e)
			}
		}
	}
	for name, entries := range byName {
		for i, f := range judge(entries) {
			switch {
			case strings.HasPrefix(name, "/control-"):
				if f.overlap {
					during(f.at).control++
				}
				continue
			case f.overlap:
				during(f.at).overlaps++
			}
			if i < maxFindings {
				c.t.Error(f.text)
			}
		}
	}
	c.judgeRegisters(registers, counts)
	c.judgeZnode(znode, byName["znode"], counts)
	c.timeRows(rows, during, goroutines)
	c.explainLosses(byName)
	c.print(rows, counts, registers)
}

// judgeRegisters checks that each acknowledged update is in the register's value, and that
// no update overwrote another.
func (c *chaos) judgeRegisters(r *registers, counts map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range r.lost {
		c.t.Errorf("lost update: %s", text)
	}
	for name, value := range r.values {
		if n := counts["write: "+name]; n != value {
			c.t.Errorf("register %s is at %d after %d updates", name, value, n)
		}
	}
}

// judgeZnode checks the same for the register in ZooKeeper, where the outcome of some
// updates is unknown.
func (c *chaos) judgeZnode(znode string, entries []entry, counts map[string]int) {
	for _, f := range judgeWrites(entries) {
		c.t.Errorf("znode: %s", f.text)
	}
	if _, err := c.raw.Sync(znode); err != nil {
		c.t.Error(err)
	}
	_, stat, err := c.raw.Get(znode)
	if err != nil {
		c.t.Fatal(err)
	}
	done, unknown := counts["txn: done"], counts["txn: unknown"]
	if v := int(stat.Version); v < done || v > done+unknown {
		c.t.Errorf("the znode's version is %d after %d writes and %d of unknown outcome", v, done, unknown)
	}
	if done == 0 {
		c.t.Error("the znode was never written")
	}
}

// timeRows measures two times. The recovery is the time from the end of a fault until each
// goroutine has completed a turn that began after it. The turn is the longest time from a
// call of Acquire until Release returned.
func (c *chaos) timeRows(rows map[string]*row, during func(int64) *row, goroutines map[[2]int][]entry) {
	for g, turns := range goroutines {
		slices.SortFunc(turns, func(a, b entry) int { return cmp.Compare(a.Began, b.Began) })
		for _, e := range turns {
			r := during(e.Ended)
			r.turn = max(r.turn, time.Duration(e.Ended-e.Began))
		}
		for _, s := range c.strokes {
			k := sort.Search(len(turns), func(k int) bool { return turns[k].Began > s.lifted })
			if k == len(turns) {
				c.t.Errorf("goroutine %v completed no turn after: %s", g, s.kind)
				continue
			}
			rows[s.kind].recovery = max(rows[s.kind].recovery, time.Duration(turns[k].Ended-s.lifted))
		}
	}
}

// explainLosses logs why locks were lost. While servers are only maintained, each lost lock
// must have been lost because its lease had run out, or because the session had expired. It also logs
// the slowest acquisition: the longest time from a call of Acquire until the lock was held.
func (c *chaos) explainLosses(byName map[string][]entry) {
	causes := make(map[string]int)
	var slowest time.Duration
	for name, entries := range byName {
		if strings.HasPrefix(name, "/control-") {
			continue
		}
		for _, e := range entries {
			switch {
			case e.Version != 0:
			case e.Lost != 0:
				if causes[e.Cause]++; c.mild && e.Cause != zklock.ErrLeaseOver.Error() && e.Cause != zklock.ErrSessionExpired.Error() {
					c.t.Errorf("%s: worker %d lost it because of: %s", name, e.Worker, e.Cause)
				}
			case e.From != 0 && !strings.HasPrefix(name, "long-"):
				slowest = max(slowest, time.Duration(e.From-e.Began))
			}
		}
	}
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		c.t.Logf("%d entries of lost locks: %s", causes[cause], cause)
	}
	c.t.Logf("slowest acquire: %.2fs", slowest.Seconds())
}

func (c *chaos) print(rows map[string]*row, counts map[string]int, r *registers) {
	var b bytes.Buffer
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "kind of fault\tinjected\tlocks lost\toverlaps\tlongest time to recover\tlongest election\tlongest turn\tcontrol's overlaps\t")
	var sum row
	line := func(kind string, r row) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%.2fs\t%.2fs\t%.2fs\t%d\t\n", kind, r.injected, r.lost, r.overlaps,
			r.recovery.Seconds(), r.election.Seconds(), r.turn.Seconds(), r.control)
	}
	for _, k := range c.kinds {
		r := rows[k.name]
		if slices.Contains(c.denied, k.name) {
			fmt.Fprintf(table, "%s\tnot allowed\t\t\t\t\t\t\t\n", k.name)
			continue
		}
		if r == nil {
			c.t.Errorf("no fault of the kind: %s", k.name)
			continue
		}
		line(k.name, *r)
		sum.injected += r.injected
		sum.lost += r.lost
		sum.overlaps += r.overlaps
		sum.control += r.control
		sum.recovery = max(sum.recovery, r.recovery)
		sum.election = max(sum.election, r.election)
		sum.turn = max(sum.turn, r.turn)
	}
	line("all", sum)
	_ = table.Flush()
	cycles := 0
	for _, v := range c.victims {
		cycles += v.newest.Cycles
	}
	fmt.Fprintf(&b, "%d turns; %d requests refused by the registers as stale, %d updates lost\n", cycles, r.stale, len(r.lost))
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "%7d  %s\n", counts[what], what)
	}
	c.t.Logf("\n%s", b.String())
	if c.mild || len(c.kinds) < len(kinds) {
		return // some kinds alone may be too weak for the checks below
	}
	if sum.lost == 0 {
		c.t.Error("no lock was lost: the faults were too weak to prove anything")
	}
	if sum.control == 0 {
		c.t.Error("the client that trusts its connection never overlapped: the faults were too weak to prove anything")
	}
}
