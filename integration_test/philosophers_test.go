package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// TestPhilosophers has five processes that take two of five forks each, in random order, while followers are
// cut off now and then. The processes' reports are the journal. From that alone the test knows which circles
// of waits there were, and it judges the library's errors by them:
//
//   - each error of a deadlock names a circle that there was;
//   - each circle ends with such an error, of one of its waits;
//   - no other wait of it fails.
//
// ZKLOCK_PHILOSOPHERS sets how long they eat; 5m by default. A machine that stalls for a session timeout ends
// waits in other ways, so the test is not one of those that each change has to pass.
func TestPhilosophers(t *testing.T) {
	long.Test(t, "it judges every wait, so it needs a machine that does not stall")
	ensemble.Require(t)
	length := long.Time(t, "ZKLOCK_PHILOSOPHERS", 5*time.Minute, 5*time.Minute)
	zk := ensemble.Start(t, ensemble.Config{Servers: 3})
	var all []*process
	for i := range 5 {
		all = append(all, startWorker(t, task{Role: "philosopher", Name: fmt.Sprint("p", i), For: length, URL: zk.URL(rootOf(t), quick())}))
	}
	for _, p := range all {
		p.await("ready")
	}
	cuts := make(chan []turn, 1)
	eaten := make(chan struct{})
	go func() { cuts <- cutFollowers(t, zk, eaten) }()
	journals := make([]chan []report, len(all))
	for i, p := range all {
		journals[i] = make(chan []report, 1)
		go func() {
			var said []report
			for r := range p.reports {
				said = append(said, r)
			}
			journals[i] <- said
		}()
		p.start()
	}
	var journal []report
	for i, said := range journals {
		limit := time.NewTimer(length + patience)
		select {
		case j := <-said:
			if last := j[len(j)-1]; last.What != "done" {
				t.Fatalf("philosopher %d has ended with %s: %s\n%s", i, last.What, last.Err, all[i].stderr.String())
			}
			journal = append(journal, j...)
		case <-limit.C:
			t.Fatalf("philosopher %d does not end", i)
		}
		limit.Stop()
	}
	close(eaten)
	slices.SortStableFunc(journal, func(a, b report) int { return int(a.At - b.At) })
	table := judgePhilosophers(t, journal)
	table.print(t, <-cuts)
}

// cutFollowers cuts a follower off from the leader for some seconds, and pauses, again and again until done.
// It returns when they were cut off.
func cutFollowers(t *testing.T, zk *ensemble.Ensemble, done <-chan struct{}) (cuts []turn) {
	defer zk.Heal()
	wait := func(d time.Duration) bool {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-done:
			return false
		case <-timer.C:
			return true
		}
	}
	for i := 0; wait(3 * time.Second); i++ {
		followers := zk.Followers()
		if len(followers) == 0 {
			continue // a moment without a leader
		}
		began := monotonic()
		if err := zk.CutFromLeader(followers[i%len(followers)]); err != nil {
			t.Log(err)
			continue
		}
		more := wait(3 * time.Second)
		zk.Heal()
		cuts = append(cuts, turn{began, monotonic()})
		if !more {
			return cuts
		}
	}
	return cuts
}

// philosopher is what one process holds and waits for, according to the journal.
type philosopher struct {
	first, second string // the forks that it holds; "" if it holds none
	wanted        string // the second one, while it waits for it
	label         string // of that wait
}

// roundTable is what the journal shows.
type roundTable struct {
	meals    int
	circles  []*ringOfWaits
	phantoms int // errors that name no circle that there was
	twice    int // circles in which two waits have failed
}

// ringOfWaits is a circle of waits.
type ringOfWaits struct {
	labels []string // sorted
	closed int64    // when its last wait was called
	ended  int64    // when the first of its waits has ended
	victim string   // its label; "" if the wait that ended first has another error, or none
	why    string   // then: how it has ended
}

// judgePhilosophers goes through the journal. A fork is held from when its acquisition has returned until its
// release is called, and a wait lasts from its call to its return. So a circle in the journal was real.
func judgePhilosophers(t *testing.T, journal []report) *roundTable {
	table, at := &roundTable{}, map[string]*philosopher{}
	open := func(label string) (found []*ringOfWaits) {
		for _, c := range table.circles {
			if c.ended == 0 && slices.Contains(c.labels, label) {
				found = append(found, c)
			}
		}
		return found
	}
	for _, r := range journal {
		f := r.Fork
		if f == nil {
			continue
		}
		who, _, _ := strings.Cut(f.Label, "-")
		p := at[who]
		if p == nil {
			p = &philosopher{}
			at[who] = p
		}
		switch r.What {
		case "takes":
			if f.Second {
				p.wanted, p.label = f.Fork, f.Label
			}
		case "has":
			for _, c := range open(f.Label) {
				c.ended, c.why = r.At, f.Label+" has got its fork"
			}
			if f.Second {
				p.second, p.wanted = f.Fork, ""
				table.meals++
			} else {
				p.first = f.Fork
			}
		case "failed":
			p.wanted = ""
			table.fails(t, &r, open(f.Label))
		case "gives":
			if f.Second {
				p.second = ""
			} else {
				p.first = ""
			}
		}
		if c := circleOf(at, r.At); c != nil && len(open(c.labels[0])) == 0 {
			table.circles = append(table.circles, c)
		}
	}
	return table
}

// fails judges the error of a take. circles are those in which its wait is.
func (table *roundTable) fails(t *testing.T, r *report, circles []*ringOfWaits) {
	named := slices.Sorted(slices.Values(r.Fork.Circle))
	real := false
	for _, c := range circles {
		c.ended = r.At
		if real = slices.Equal(c.labels, named); real {
			c.victim = r.Fork.Label
		} else {
			c.why = r.Err
		}
	}
	if len(named) == 0 || real {
		return
	}
	if slices.ContainsFunc(table.circles, func(c *ringOfWaits) bool { return slices.Equal(c.labels, named) }) {
		table.twice++
		t.Errorf("a second wait of a circle has failed: %s", r.Err)
		return
	}
	table.phantoms++
	t.Errorf("there was no such circle: %s", r.Err)
}

// circleOf returns the circle in which philosophers wait at a moment; nil if there is none that is new.
func circleOf(at map[string]*philosopher, now int64) *ringOfWaits {
	holder := map[string]*philosopher{}
	for _, p := range at {
		if p.first != "" {
			holder[p.first] = p
		}
	}
	for _, p := range at {
		var labels []string
		q := p
		for q != nil && q.wanted != "" && len(labels) <= len(at) {
			labels = append(labels, q.label)
			if q = holder[q.wanted]; q == p {
				slices.Sort(labels)
				return &ringOfWaits{labels: labels, closed: now}
			}
		}
	}
	return nil
}

// print prints the figures, and checks that each circle has ended with a victim.
func (table *roundTable) print(t *testing.T, cuts []turn) {
	var quiet, cut []time.Duration
	for _, c := range table.circles {
		switch {
		case c.ended == 0:
			t.Errorf("the circle of %v has not ended", c.labels)
		case c.victim == "":
			t.Errorf("the circle of %v has ended after %v without a victim: %s", c.labels, time.Duration(c.ended-c.closed), c.why)
		case slices.ContainsFunc(cuts, func(k turn) bool { return k.Began < c.ended && c.closed < k.Ended }):
			cut = append(cut, time.Duration(c.ended-c.closed))
		default:
			quiet = append(quiet, time.Duration(c.ended-c.closed))
		}
	}
	if len(quiet)+len(cut) == 0 {
		t.Error("there was no circle, so the run proves nothing")
	}
	t.Logf("%d meals, %d circles, %d of them ended by one victim each, %d false, %d with two victims, %d cuts; from when a circle closed to the victim's error: %s; with a follower cut off: %s; all: %s",
		table.meals, len(table.circles), len(quiet)+len(cut), table.phantoms, table.twice, len(cuts), percentiles(quiet), percentiles(cut), percentiles(slices.Concat(quiet, cut)))
}

func percentiles(d []time.Duration) string {
	if len(d) == 0 {
		return "none"
	}
	slices.Sort(d)
	at := func(p int) time.Duration { return d[min(len(d)*p/100, len(d)-1)].Round(time.Millisecond) }
	return fmt.Sprintf("p50 %v, p99 %v, longest %v of %d", at(50), at(99), at(100), len(d))
}
