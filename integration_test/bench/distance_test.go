package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/integration_test/bench/plot"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

var update = flag.Bool("update", false, "write distance.ndjson and distance.svg from a run of TestGrantsAtADistance")

// distanceHold is how long each holder works.
const distanceHold = 20 * time.Millisecond

// far is what is granted with a round trip to the servers. It is a line of distance.ndjson.
type far struct {
	Kind      string  `json:"kind"`
	Processes int     `json:"processes"`
	RTT       float64 `json:"rtt"`     // in ms
	Permits   int     `json:"permits"` // how many may hold at once
	Grants    float64 `json:"grants"`  // a second
}

// least is what n permits must give: 0.8 n / (hold + 2 round trips), a second.
func (f far) least() float64 {
	return 0.8 * float64(f.Permits) / (distanceHold.Seconds() + 2*f.RTT/1000)
}

// distances are the round trips, in ms.
var distances = []float64{0, 1, 5, 10, 50}

// farKind is what callers acquire: the i-th of so many callers for each permit.
type farKind struct {
	name    string
	drawn   string // its name in the picture
	permits int
	want    func(c *zklock.Client, i int) zklock.Acquirer
}

// readers are let in together behind a writer, again and again.
const readers = "readers behind a writer"

var farKinds = []farKind{
	{"mutex", "mutex", 1, func(c *zklock.Client, _ int) zklock.Acquirer { return c.Mutex("m") }},
	{"semaphore of 5", "semaphore of 5", 5, func(c *zklock.Client, _ int) zklock.Acquirer { return c.Semaphore("s", 5) }},
	{"semaphore of 50", "semaphore of 50", 50, func(c *zklock.Client, _ int) zklock.Acquirer { return c.Semaphore("s", 50) }},
	{readers, "50 readers", 50, func(c *zklock.Client, _ int) zklock.Acquirer { return c.RWMutex("r").Reader() }},
	{"All of disjoint names", "5 Alls of two", 5, func(c *zklock.Client, i int) zklock.Acquirer {
		return zklock.All(c.Mutex(fmt.Sprint("a", i%5)), c.Mutex(fmt.Sprint("b", i%5)))
	}},
}

// measureFar measures a kind with a round trip, in virtual time.
func measureFar(t *testing.T, k farKind, processes int, rtt float64) (f far) {
	synctest.Test(t, func(t *testing.T) {
		f = far{Kind: k.name, Processes: processes, RTT: rtt, Permits: k.permits}
		e := memdriver.New(memdriver.WithLatency(time.Duration(rtt * float64(time.Millisecond) / 2)))
		defer e.Close()
		var clients []*zklock.Client
		for range processes + 1 { // the last one writes
			c, err := zklock.OpenConnector(e.Connector())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			clients = append(clients, c)
		}
		if k.name == readers {
			f.Grants = behindWriters(t, k, clients[processes], clients[:processes])
		} else {
			f.Grants = inALoop(t, k, clients[:processes])
		}
	})
	return f
}

// inALoop returns how many of four callers for each permit, which wait to the end and come again, have a lock in a second.
func inALoop(t *testing.T, k farKind, clients []*zklock.Client) float64 {
	const warm, seconds = time.Second, 3
	var granted atomic.Int64
	begin := time.Now().Add(warm) // after the first uses of the names
	end := begin.Add(seconds * time.Second)
	var callers sync.WaitGroup
	for i := range 4 * k.permits {
		a := k.want(clients[i/k.permits%len(clients)], i)
		callers.Go(func() {
			for time.Now().Before(end) {
				holdFar(t, a, func() {
					if now := time.Now(); !now.Before(begin) && now.Before(end) {
						granted.Add(1)
					}
				})
			}
		})
	}
	callers.Wait()
	return float64(granted.Load()) / seconds
}

// behindWriters lets a writer hold while all readers wait, again and again. It returns how many of these read in a second, from the release of the
// writer to the end of the last one's work: the next writer's wait begins there, with that reader's release.
func behindWriters(t *testing.T, k farKind, writer *zklock.Client, clients []*zklock.Client) float64 {
	const rounds = 5
	var reading time.Duration
	for round := range rounds + 1 {
		w, err := writer.RWMutex("r").Writer().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var granted atomic.Int64 // the last time, in ns
		for i := range k.permits {
			all.Go(func() {
				holdFar(t, k.want(clients[i%len(clients)], i), func() { granted.Store(time.Now().UnixNano()) })
			})
		}
		time.Sleep(time.Second)
		began := time.Now()
		if err := w.Release(t.Context()); err != nil {
			t.Error(err)
		}
		all.Wait()
		if round > 0 { // the first uses of a name take longer
			reading += time.Unix(0, granted.Load()).Sub(began) + distanceHold
		}
	}
	return float64(rounds*k.permits) / reading.Seconds()
}

// holdFar acquires, works and releases.
func holdFar(t *testing.T, a zklock.Acquirer, granted func()) {
	l, err := a.Acquire(context.Background())
	if err != nil {
		t.Error(err)
		return
	}
	granted()
	time.Sleep(distanceHold)
	if err := l.Release(context.Background()); err != nil {
		t.Error(err)
	}
}

// ordered is what the order of callers of one instant changes, which no clock of a test decides.
const ordered = 0.9

// TestGrantsAtADistance: n permits give 0.8 n / (hold + 2 round trips) grants a second, at every distance, to callers
// of one process and of four, with four waiters for each permit. In virtual time the figures are those of any machine: they are in
// distance.ndjson, from which distance.svg is drawn.
func TestGrantsAtADistance(t *testing.T) {
	if corekit.Race {
		t.Skip("it takes ten times as long")
	}
	known, err := readFar()
	if err != nil && !*update {
		t.Fatal(err)
	}
	var all []far
	for _, processes := range []int{1, 4} {
		for _, k := range farKinds {
			for _, rtt := range distances {
				if !long.On() && !*update && (rtt < 10 || k.permits == 50 && rtt < 50) {
					continue // the more grants, the longer it takes
				}
				f := measureFar(t, k, processes, rtt)
				t.Logf("%s, %d processes, round trip %g ms: %.1f grants a second, want %.1f", f.Kind, f.Processes, f.RTT, f.Grants, f.least())
				if f.Grants < ordered*f.least() {
					t.Errorf("%+v, want %.1f grants a second", f, f.least())
				}
				if !*update && !slices.ContainsFunc(known, f.like) {
					t.Errorf("distance.ndjson does not have %+v: run go test ./integration_test/bench -run TestGrantsAtADistance -update", f)
				}
				f.Grants = math.Round(f.Grants)
				all = append(all, f)
			}
		}
	}
	if *update {
		if err := writeFar(all); err != nil {
			t.Fatal(err)
		}
	}
}

// like reports whether f is the same measurement as g, up to the order of callers of one instant: among processes it decides which of them has a permit
// next.
func (f far) like(g far) bool {
	difference := math.Abs(f.Grants - g.Grants)
	f.Grants = g.Grants
	return f == g && difference <= 0.15*g.Grants+1
}

// TestPictureOfDistances: the picture is drawn from the figures.
func TestPictureOfDistances(t *testing.T) {
	all, err := readFar()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := drawFar(&b, all); err != nil {
		t.Fatal(err)
	}
	shown, err := os.ReadFile("distance.svg")
	if err != nil || !bytes.Equal(shown, b.Bytes()) {
		t.Errorf("distance.svg is not drawn from distance.ndjson (%v): run go test ./integration_test/bench -run TestGrantsAtADistance -update", err)
	}
	if n := bytes.Count(b.Bytes(), []byte("<polyline")); n != 2*(len(farKinds)+1) {
		t.Errorf("%d lines are drawn, want one for each kind and one for what must be, for one process and for four", n)
	}
}

// readFar and writeFar read and write the files.
func readFar() (all []far, err error) {
	text, err := os.ReadFile("distance.ndjson")
	for line := range strings.Lines(string(text)) {
		var f far
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, err
}

func writeFar(all []far) error {
	var lines, picture bytes.Buffer
	e := json.NewEncoder(&lines)
	for _, f := range all {
		if err := e.Encode(f); err != nil {
			return err
		}
	}
	return errors.Join(drawFar(&picture, all), os.WriteFile("distance.ndjson", lines.Bytes(), 0o644), os.WriteFile("distance.svg", picture.Bytes(), 0o644))
}

// drawFar draws the grants for each permit. A logarithmic axis has no 0: the figures without a distance are not drawn.
func drawFar(w io.Writer, all []far) error {
	var panels []plot.Panel
	for _, of := range []struct {
		processes int
		title     string
	}{{1, "callers of one process"}, {4, "callers of four processes"}} {
		p := plot.Panel{Title: of.title, X: "round trip in ms", Y: "grants a second for each permit"}
		must := plot.Series{Name: "at least"}
		for _, k := range farKinds {
			line := plot.Series{Name: k.drawn}
			for _, f := range all {
				if f.Kind == k.name && f.Processes == of.processes && f.RTT > 0 {
					line.Points = append(line.Points, plot.Point{X: f.RTT, Y: f.Grants / float64(f.Permits)})
				}
			}
			p.Series = append(p.Series, line)
		}
		for _, rtt := range distances[1:] {
			must.Points = append(must.Points, plot.Point{X: rtt, Y: far{RTT: rtt, Permits: 1}.least()})
		}
		p.Series = append(p.Series, must)
		panels = append(panels, p)
	}
	return plot.Write(w, panels)
}
