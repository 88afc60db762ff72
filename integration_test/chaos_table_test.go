//go:build linux

package integration_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
	past "github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
	"github.com/zklock/go-zklock/zklock"
)

// maxFindings is the number of overlaps that are printed. The table counts all of them.
const maxFindings = 20

// row has the figures of one kind of fault.
type row struct {
	injected, lost, overlaps, control int
	recovery, turn                    time.Duration
}

// stroke is one fault of a run.
type stroke struct {
	at  int64
	row *row // of its kind
}

// judge prints the table, and fails the test if it finds something wrong in the history or in the journal.
func (c *chaos) judge(events []past.Event, znode, journal string) {
	rows := make(map[fault.Kind]*row)
	var strokes []stroke
	var healed int64
	for _, e := range events {
		switch e.Kind {
		case past.Fault:
			kind, _, _ := strings.Cut(e.Reason, " for ")
			k := fault.Kind(kind)
			if rows[k] == nil {
				rows[k] = &row{}
			}
			rows[k].injected++
			strokes, healed = append(strokes, stroke{e.At, rows[k]}), e.At
		case past.Healed:
			healed = e.At
		case past.Recovered:
			r := strokes[len(strokes)-1].row
			r.recovery = max(r.recovery, time.Duration(e.At-healed))
		}
	}
	during := func(at int64) *row { // that of the last fault before a time
		i := sort.Search(len(strokes), func(i int) bool { return strokes[i].at > at })
		if i == 0 {
			return &row{}
		}
		return strokes[i-1].row
	}
	control := slices.DeleteFunc(slices.Clone(events), func(e past.Event) bool { return e.Name != "" && !strings.HasPrefix(e.Name, chaosControl) })
	ours := slices.DeleteFunc(slices.Clone(events), func(e past.Event) bool { return strings.HasPrefix(e.Name, chaosControl) })
	f := judge.Measure(ours)
	if f.Overlaps+f.Fell+f.Lost+f.FencedLost+f.FencedOverlaps+f.Refused+len(f.Stuck) != 0 && !c.late(f) {
		c.t.Errorf("%+v, want no mistakes", f.Verdict)
	}
	if len(f.Stuck) != 0 {
		c.t.Errorf("a new process does not get %q after the faults", f.Stuck)
	}
	if o, known := judge.Porcupine(judge.Holds(ours), patience); known && !o.Agrees(f.Verdict) {
		c.t.Errorf("the judges differ: porcupine says %+v, and the plain check %+v", o, f.Verdict)
	} else if !known {
		c.t.Logf("porcupine has no answer within %v", patience)
	}
	c.judgeLogs(ours, control)
	for i, h := range judge.Overlaps(judge.Holds(ours)) {
		if i < maxFindings {
			c.t.Errorf("another one held %s in spite of worker %d, acquisition %d with token %s", h.Name, h.Worker, h.ID, h.Token)
		}
		during(h.Sure).overlaps++
	}
	for _, h := range judge.Overlaps(judge.Holds(control)) {
		during(h.Sure).control++
	}
	counts := c.reasons(ours, during)
	slowest := time.Duration(0)
	for _, h := range judge.Holds(ours) {
		if h.Sure == 0 || strings.HasPrefix(h.Name, "long-") {
			continue
		}
		slowest = max(slowest, time.Duration(h.Granted-h.Asked))
		r := during(h.Ended)
		r.turn = max(r.turn, time.Duration(h.Ended-h.Asked))
	}
	c.judgeJournal(events, znode, journal, counts)
	longest := slices.MaxFunc(judge.Holds(ours), func(a, b judge.Hold) int { return len(a.Name) - len(b.Name) }).Name
	_, session := c.times()
	c.t.Logf("slowest acquire: %.2fs\n%v", slowest.Seconds(), c.servers.Settings(session, chaosWorkers, longest).At(c.distance))
	c.print(rows, counts, f)
}

// judgeLogs judges the holds by the servers' transaction logs, which have to convict the client that trusts its connection.
func (c *chaos) judgeLogs(ours, control []past.Event) {
	stays, err := judge.ReadStays(c.servers.Logs())
	c.must(err)
	s := judge.JudgeServers(ours, stays)
	c.t.Logf("\n%s", s.Table("zklock"))
	if len(s.Mistakes) > 0 {
		c.t.Logf("by the servers' logs:\n%s", strings.Join(s.Mistakes, "\n"))
	}
	if s.Judged == 0 || s.Tokens+s.Outlived+s.Unknown+s.Early > 0 {
		c.t.Errorf("by the servers' logs: %d holds judged, %d of unknown sessions, %d with a wrong token, %d outlived their znode, %d granted early", s.Judged, s.Unknown, s.Tokens, s.Outlived, s.Early)
	}
	trusting := judge.JudgeServers(control, stays)
	c.t.Logf("\n%s", trusting.Table("a trusting client"))
	if overlaps := judge.Overlaps(judge.Holds(control)); len(overlaps) > 0 && trusting.Outlived == 0 {
		c.t.Errorf("the servers' logs do not convict a client that trusts its connection of its %d overlaps", len(overlaps))
	}
}

// late reports whether the only mistake is lost updates of registers that accept all writes: those that a client was stopped in
// are late, and only the fenced registers refuse them.
func (c *chaos) late(f judge.Figures) bool {
	return f.Passed() && f.Refused == 0 && slices.Contains(c.kinds, fault.StopWrite)
}

// reasons counts why acquisitions and releases failed. While servers are only maintained, each lost lock must have been lost
// because its lease had run out, or because the session had expired.
func (c *chaos) reasons(events []past.Event, during func(int64) *row) map[string]int {
	counts := make(map[string]int)
	for _, e := range events {
		if (e.Kind == past.Read || e.Kind == past.Write || e.Kind == past.Reread) && e.Refused {
			counts["refused by a register"]++
		}
		if e.Kind != past.Failed {
			continue
		}
		search("the reason of a failure", []byte(e.Reason))
		cause, lost := strings.CutPrefix(e.Reason, lostBecause)
		switch {
		case strings.HasPrefix(e.Reason, unexpected):
			c.t.Errorf("worker %d, %s: %s", e.Worker, e.Name, e.Reason)
		case lost && c.mild && cause != zklock.ErrLeaseOver.Error() && cause != zklock.ErrSessionExpired.Error():
			c.t.Errorf("%s: worker %d lost it because of: %s", e.Name, e.Worker, cause)
			fallthrough
		case lost:
			during(e.At).lost++
			fallthrough
		default:
			counts[e.Reason]++
		}
	}
	return counts
}

// judgeJournal checks that each acknowledged write of the register in ZooKeeper is in its version, in the order of tokens, and that
// each worker that was not killed left nothing behind. The outcome of some writes is not known: of those, and of what a process did
// that was killed.
func (c *chaos) judgeJournal(events []past.Event, znode, path string, counts map[string]int) {
	text, err := os.ReadFile(path)
	c.must(err)
	var writes []chaosNote
	left := 0 // the processes of which something may be left
	unknown := 0
	for _, e := range events {
		switch {
		case e.Kind == past.Start:
			left++
		case e.Kind == past.Kill && e.Reason != "":
			left--
			unknown += chaosClients
		}
	}
	for line := range bytes.Lines(text) {
		var n chaosNote
		c.must(json.Unmarshal(line, &n))
		switch {
		case n.Ended:
			left--
		case n.Refused != "":
			counts["txn: "+n.Refused]++
		case n.Version == 0:
			counts["txn: unknown"]++
			unknown++
		default:
			counts["txn: done"]++
			writes = append(writes, n)
		}
	}
	if left != 0 {
		c.t.Errorf("%d processes have not ended with nothing left", left)
	}
	for _, text := range judgeWrites(writes) {
		c.t.Errorf("znode: %s", text)
	}
	_, err = c.raw.Sync(znode)
	c.must(err)
	_, stat, err := c.raw.Get(znode)
	c.must(err)
	if v := int(stat.Version); v < len(writes) || v > len(writes)+unknown || v == 0 {
		c.t.Errorf("the znode's version is %d after %d writes and %d of unknown outcome", v, len(writes), unknown)
	}
}

// judgeWrites checks the acknowledged writes of the register in ZooKeeper: no two writes
// made the same version, and versions follow the order of tokens.
func judgeWrites(writes []chaosNote) (found []string) {
	slices.SortFunc(writes, func(a, b chaosNote) int { return cmp.Compare(a.Version, b.Version) })
	for i, n := range writes[min(1, len(writes)):] {
		if last := writes[i]; n.Version == last.Version || n.Token.Compare(last.Token) < 0 {
			found = append(found, fmt.Sprintf("version %d was written with token %v, version %d with token %v", last.Version, last.Token, n.Version, n.Token))
		}
	}
	return found
}

func TestChaosJudgeFindsWrongWrites(t *testing.T) {
	write := func(zxid int64, version int32) chaosNote {
		return chaosNote{Token: zklock.Token{Zxid: zxid}, Version: version}
	}
	for want, writes := range map[string][]chaosNote{
		"":          {write(1, 1), write(2, 4), write(1, 2)},
		"version 1": {write(1, 1), write(1, 1)},
		"version 3": {write(1, 3), write(2, 2)},
	} {
		found := strings.Join(judgeWrites(writes), "; ")
		if (found == "") != (want == "") || !strings.Contains(found, want) {
			t.Errorf("found %q, want %q", found, want)
		}
	}
}

func (c *chaos) print(rows map[fault.Kind]*row, counts map[string]int, f judge.Figures) {
	var b bytes.Buffer
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "kind of fault\tinjected\tlocks lost\toverlaps\tlongest time to recover\tlongest turn\tcontrol's overlaps\t")
	var sum row
	line := func(kind fault.Kind, r row) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%.2fs\t%.2fs\t%d\t\n", kind, r.injected, r.lost, r.overlaps, r.recovery.Seconds(), r.turn.Seconds(), r.control)
	}
	for _, k := range c.denied {
		fmt.Fprintf(table, "%s\tnot allowed\t\t\t\t\t\t\n", k)
	}
	for _, k := range c.kinds {
		r := rows[k]
		if r == nil {
			c.t.Errorf("no fault of the kind: %s", k)
			continue
		}
		line(k, *r)
		sum.injected += r.injected
		sum.lost += r.lost
		sum.overlaps += r.overlaps
		sum.control += r.control
		sum.recovery = max(sum.recovery, r.recovery)
		sum.turn = max(sum.turn, r.turn)
	}
	line("all", sum)
	_ = table.Flush()
	fmt.Fprintf(&b, "%d turns; %d requests refused by the registers as stale, %d updates lost\n", f.Grants, counts["refused by a register"], f.FencedLost)
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "%7d  %s\n", counts[what], what)
	}
	c.t.Logf("\n%s", b.String())
	if c.mild || len(c.kinds)+len(c.denied) < len(chaosKinds()) {
		return // some kinds alone may be too weak for the checks below
	}
	if sum.lost == 0 {
		c.t.Error("no lock was lost: the faults were too weak to prove anything")
	}
	if sum.control == 0 && !c.shipped { // a server that is cut off leaves its clients before a session of 30 s expires
		c.t.Error("the client that trusts its connection never overlapped: the faults were too weak to prove anything")
	}
}
