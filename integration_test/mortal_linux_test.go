package integration_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock"
)

// mortalRun is a fleet of processes that share a session directory, and that are killed at random.
type mortalRun struct {
	t     *testing.T
	dir   string
	task  task
	space bool // some processes have a namespace of PIDs of their own
	fleet [mortals]*process
	dead  map[*process]time.Time // when each was killed; none has run since a moment after that
	all   []*process
	slept map[*process]bool // they were stopped for a while, and may have lost locks
}

// TestProcessesKilledAtRandom kills processes that open clients, queue, wait, hold, hand over, keep,
// release and close. No two processes work under a lock at the same time, tokens rise, and only sessions
// of processes that were killed are ended by others.
func TestProcessesKilledAtRandom(t *testing.T) {
	for _, c := range []struct {
		name    string
		servers int
		space   bool
		stops   func(r *mortalRun, p *process) // now and then done to a process, in addition to the kills
		freezes bool
		always  bool
	}{
		{name: "one server", servers: 1},
		{name: "three servers", servers: 3, always: true},
		{name: "namespaces of PIDs", servers: 1, space: true},
		{name: "stopped for a while", servers: 3, stops: (*mortalRun).stop},
		{name: "frozen for a while", servers: 1, stops: (*mortalRun).freeze, freezes: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ensemble.Require(t)
			if !c.always {
				long.Test(t, "processes are killed in other ways, too")
			}
			if c.space && os.Geteuid() != 0 {
				t.Skip("only root can make a namespace of PIDs")
			}
			if c.freezes {
				if err := os.Mkdir(freezer+"zklock-test", 0o700); err != nil {
					t.Skipf("this machine has no freezer: %v", err)
				}
				_ = os.Remove(freezer + "zklock-test")
			}
			zk := ensemble.Start(t, ensemble.Config{Servers: c.servers})
			r := &mortalRun{t: t, dir: filepath.Join(t.TempDir(), "d"), space: c.space, dead: make(map[*process]time.Time), slept: make(map[*process]bool)}
			r.task = task{Role: "mortal", URL: ensemble.URL(zk.Hosts(), rootOf(t), quick("session_dir", r.dir, "keep", "20ms", "session_timeout", "6s"))}
			board := filepath.Join(t.TempDir(), "board")
			b, err := mapBoard(board)
			if err != nil {
				t.Fatal(err)
			}
			begin := func(i int) {
				k := r.task
				k.Mortal = &mortalTask{Board: board, Worker: i, Close: i%2 == 0}
				r.fleet[i] = r.start(k)
			}
			for i := range r.fleet {
				begin(i)
			}
			kills := long.Count(t, "ZKLOCK_KILLS", 6, 60)
			if c.stops != nil {
				kills = max(kills/10, 10) // since each pause takes seconds
			}
			for n := range kills {
				// Some die at once, in Open; but on a busy machine others would never get further.
				if holds := b.holds.Load(); n%2 == 0 {
					wait.Until(t, "a process has held a lock", func() bool { return b.holds.Load() > holds+5 })
				}
				time.Sleep(rand.N(200 * time.Millisecond))
				i := rand.IntN(mortals)
				p := r.fleet[i]
				if c.stops != nil && n%5 == 4 {
					c.stops(r, r.fleet[(i+1)%mortals])
				}
				r.dead[p] = time.Now()
				p.kill()
				begin(i)
			}
			r.finish(kills, b)
		})
	}
}

// start begins a process.
func (r *mortalRun) start(k task) *process {
	var by []string
	if r.space && rand.IntN(2) == 0 {
		by = []string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}
	}
	p := startWorkerBy(r.t, k, by...)
	r.all = append(r.all, p)
	return p
}

// pauses returns for how long a process is stopped: sometimes for longer than its session.
func pauses() time.Duration { return time.Second + rand.N(19*time.Second) }

// stop stops a process for a while.
func (r *mortalRun) stop(p *process) {
	r.slept[p] = true
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			r.t.Fatal(err)
		}
		if s == syscall.SIGSTOP {
			time.Sleep(pauses())
		}
	}
}

// freezer is where groups of control that can be frozen are.
const freezer = "/sys/fs/cgroup/freezer/"

// freeze freezes a process for a while, with the whole group of control that it alone is in.
func (r *mortalRun) freeze(p *process) {
	group := freezer + "zklock-" + strconv.Itoa(p.cmd.Process.Pid)
	if err := os.Mkdir(group, 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.slept[p] = true
	write := func(file, text string) {
		if err := os.WriteFile(filepath.Join(group, file), []byte(text), 0); err != nil {
			r.t.Fatal(err)
		}
	}
	write("cgroup.procs", strconv.Itoa(p.cmd.Process.Pid))
	write("freezer.state", "FROZEN")
	time.Sleep(pauses())
	write("freezer.state", "THAWED")
	if err := os.WriteFile(freezer+"cgroup.procs", []byte(strconv.Itoa(p.cmd.Process.Pid)), 0); err == nil {
		_ = os.Remove(group)
	}
}

// finish stops the processes that live, and judges what all of them have reported.
func (r *mortalRun) finish(kills int, b *board) {
	t := r.t
	for _, p := range r.fleet {
		p.start()
	}
	owner := make(map[int64]*process)
	for _, p := range r.all {
		for rep, ok := p.next(); ok; rep, ok = p.next() {
			_, killed := r.dead[p]
			switch rep.What {
			case "session":
				owner[rep.From] = p
			case "violation":
				t.Error(rep.Err)
			case "expired":
				if !killed && !r.slept[p] {
					t.Errorf("session %#x of a process that lives has expired: %s", rep.From, rep.Err)
				}
			}
		}
	}
	ended, unknown := 0, 0
	for _, p := range r.all {
		for line := range strings.Lines(p.stderr.String()) {
			var l struct {
				Time    time.Time `json:"time"`
				Msg     string    `json:"msg"`
				Session string    `json:"session"`
			}
			if json.Unmarshal([]byte(line), &l) != nil || !strings.Contains(l.Msg, "dead process") {
				continue
			}
			id, err := strconv.ParseUint(l.Session, 0, 64)
			if err != nil {
				t.Fatal(err)
			}
			ended++
			whose := owner[int64(id)]
			if whose == nil {
				unknown++ // killed before it could report the session
				continue
			}
			if at, killed := r.dead[whose]; !killed || l.Time.Before(at) {
				t.Errorf("session %#x was ended at %v, and its process was killed at %v (zero: never)", id, l.Time, at)
			}
		}
	}
	// The process that died last may have left sessions when no other one was there.
	c, err := zklock.Open(withCanary(r.task.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Ping(within(t)); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "only the session of the last client has a file", func() bool { return len(sessionFiles(t, r.dir)) == 1 })
	t.Logf("%d kills, %d holds; others have ended %d sessions of the dead, %d of these not reported before the kill", kills, b.holds.Load(), ended, unknown)
	if b.holds.Load() == 0 || ended == 0 {
		t.Error("the run shows nothing")
	}
}
