package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/integration_test/bench/worker"
)

// runner makes the contestants take turns, A B C A B C, so that a noisy machine disturbs
// them alike. Only ratios within one run mean anything.
type runner struct {
	servers *servers
	rounds  int
	length  time.Duration
	warmed  time.Duration                        // how long the servers had worked before the first row
	start   map[string]func() (*exec.Cmd, error) // how to start a worker, by contestant
	addrs   map[string]string                    // the servers of those that do not use ZooKeeper
	say     func(format string, args ...any)     // progress
	rows    int                                  // the number of rows so far, over all runs
}

// warm keeps the servers busy with the requests of the contestants that are written in Go,
// until the servers' code is compiled. Compiling takes as much processor time as the work
// itself, which would slow down the contestants that take the first turns.
func (b *runner) warm(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	b.say("warming up the servers for %v ...", d)
	who := []string{ours, zkLock, floor}
	w := *b
	w.rounds = int(max(1, d/(b.length*time.Duration(len(who)))))
	_, err := w.run(ctx, row{name: "warm-up", kind: worker.Mutex, names: worker.Own, processes: 1, goroutines: 64}, who)
	b.rows = w.rows
	return err
}

// team has a contestant's processes in a row.
type team []*process

func (t team) close() {
	for _, p := range t {
		p.close()
	}
}

// run measures a row. Each contestant takes a first turn, which is not counted, and then
// one turn in each round. With a load, it has new processes in each turn, and no first turn.
func (b *runner) run(ctx context.Context, r row, who []string) (res result, err error) {
	b.rows++
	prefix := fmt.Sprintf("row%d", b.rows)
	rounds := b.rounds
	if r.load != nil {
		rounds = min(rounds, loadRounds)
	}
	res = result{Row: r.name, Rounds: rounds, Turns: make(map[string][]figures), Absent: make(map[string]string), row: r}
	teams := make(map[string]team)
	defer func() {
		for _, t := range teams {
			t.close()
		}
	}()
	for _, name := range who {
		t, err := b.assemble(name, r.processes)
		if err != nil {
			b.say("%s: without %s: %v", r.name, name, err)
			res.Absent[name] = err.Error()
			continue
		}
		teams[name] = t
		res.Who = append(res.Who, name)
	}
	if teams[who[0]] == nil {
		return res, errors.New(res.Absent[who[0]])
	}
	if r.held {
		if err := hold(teams[ours][0], teams[floor], prefix); err != nil {
			return res, err
		}
	}
	first := -1
	if r.load != nil {
		first = 0 // its turns warm up by themselves
	}
	for round := first; round < rounds; round++ {
		for _, name := range slices.Clone(res.Who) {
			if ctx.Err() != nil {
				return res, ctx.Err()
			}
			length := b.length
			if round < 0 {
				length /= 2
			}
			var f figures
			var err error
			if r.load != nil && round > first {
				// An overload may leave its process with much to do.
				teams[name].close()
				teams[name], err = b.assemble(name, r.processes)
			}
			if err == nil {
				f, err = b.turn(name, teams[name], r, fmt.Sprintf("%s-%d", prefix, round+1), prefix, length)
			}
			if err != nil && name == who[0] {
				return res, err
			}
			if err != nil {
				b.say("%s: %s failed, and is left out from here on: %v", r.name, name, err)
				res.Absent[name] = err.Error()
				res.Who = slices.DeleteFunc(res.Who, func(s string) bool { return s == name })
				delete(res.Turns, name)
				continue
			}
			if round >= 0 {
				res.Turns[name] = append(res.Turns[name], f)
			}
		}
	}
	if r.tidy {
		b.leftovers(prefix, res)
	}
	if r.names == worker.Fresh {
		for _, t := range teams {
			t.close()
		}
		clear(teams)
		return res, b.sweep(prefix)
	}
	return res, nil
}

// assemble starts a contestant's processes.
func (b *runner) assemble(name string, n int) (team, error) {
	var t team
	for i := range n {
		cmd, err := b.start[name]()
		if err != nil {
			t.close()
			return nil, err
		}
		p, err := startProcess(fmt.Sprintf("%s %d", name, i), cmd)
		if err != nil {
			t.close()
			return nil, err
		}
		t = append(t, p)
	}
	for _, p := range t {
		if _, err := p.ask("versions"); err != nil { // it answers when it has its session
			t.close()
			return nil, err
		}
	}
	return t, nil
}

// hold makes the process without locks hold a name, by creating a queue node of zklock's.
// It has no session of this library, which sends heartbeats: so the servers serve the
// contestants' requests only. Before that, us creates the name's znode.
func hold(us *process, raw team, name string) error {
	for _, line := range []string{"hold " + name, "release"} {
		if _, err := us.ask("%s", line); err != nil {
			return err
		}
	}
	if raw == nil {
		return fmt.Errorf("no process to hold %s", name)
	}
	_, err := raw[0].ask("hold %s/%s/_c_7f3c8a52-0d14-4c1e-9b7a-5e2f60a1d3b8-__WRIT__", zklockRoot, name)
	return err
}

// turn runs one contestant's turn. Workloads that are done once use a name that is unique to
// the turn. The others use the same names in each turn, so that the names are known.
func (b *runner) turn(who string, t team, r row, unique, known string, length time.Duration) (figures, error) {
	if r.relay > 0 {
		return relay(t, r, known, length)
	}
	if r.wait {
		return b.wait(who, t, known, length)
	}
	if r.load != nil {
		return b.load(who, t, r, unique, length)
	}
	for _, p := range t {
		var err error
		if r.once {
			err = p.send("once %s %d %s %s", r.kind, r.goroutines, r.names, unique)
		} else {
			err = p.send("cycles %s %d %s %s %d", r.kind, r.goroutines, r.names, known, length.Milliseconds())
		}
		if err != nil {
			return nil, err
		}
	}
	for _, p := range t {
		if _, err := p.answer("ready", patience); err != nil {
			return nil, err
		}
	}
	before, err := b.servers.status()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	for _, p := range t {
		if err := p.send("go"); err != nil {
			return nil, err
		}
	}
	var each []figures
	for _, p := range t {
		line, err := p.answer("done", 2*length+patience)
		if err != nil {
			return nil, err
		}
		f, err := parseFigures(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		each = append(each, f)
	}
	took := time.Since(begin)
	after, err := b.servers.status()
	if err != nil {
		return nil, err
	}
	f := combine(each)
	f["packets"] = after.received + after.sent - before.received - before.sent
	f["each"] = f["packets"] / f["total"]
	if r.once {
		f["seconds"] = took.Seconds()
	}
	if r.kind == worker.Try || r.kind == worker.TryLocal {
		f["requests"] = (after.received - before.received) / f["total"]
		f["writes"] = (after.zxid - before.zxid) / f["total"]
	}
	return f, nil
}

// combine combines the figures of several processes.
func combine(each []figures) figures {
	all := figures{}
	least, most := each[0]["cycles"], each[0]["cycles"]
	for _, key := range []string{"acquire50", "acquire99", "release50", "acquireMax", "seconds"} {
		var v []float64
		for _, f := range each {
			if f["cycles"] > 0 || key == "seconds" { // a process without cycles has no times, rather than times of 0
				v = append(v, f[key])
			}
		}
		if len(v) > 0 {
			all[key] = median(v)
		}
	}
	for _, f := range each {
		all["cycles"] += f["cycles"]
		all["total"] += f["total"]
		all["rate"] += f["cycles"] / f["seconds"]
		least, most = min(least, f["cycles"]), max(most, f["cycles"])
	}
	all["even"] = least / most
	return all
}

// leftovers counts the znodes that a row's names have left behind. It gives zklock, which
// removes idle znodes, up to a minute to do so.
func (b *runner) leftovers(prefix string, res result) {
	conn, err := connect(b.servers.hosts, rawRoot)
	if err != nil {
		b.say("%s: cannot count the znodes that are left behind: %v", res.Row, err)
		return
	}
	defer conn.Close()
	for who, root := range roots {
		deadline := time.Now().Add(time.Minute)
		n, err := count(conn, root, prefix)
		for who == ours && n > 0 && err == nil && time.Now().Before(deadline) {
			time.Sleep(time.Second)
			n, err = count(conn, root, prefix)
		}
		for _, f := range res.Turns[who] {
			if err == nil {
				f["left"] = float64(n)
			}
		}
	}
}

// sweep removes the znodes of a row's names. There may be a hundred thousand, and the servers would
// remove the containers among them during the next rows.
func (b *runner) sweep(prefix string) error {
	conn, err := connect(b.servers.hosts, rawRoot)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, root := range []string{zklockRoot, curatorRoot} {
		names, _, err := conn.Children(root)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix+"-") })
		for some := range slices.Chunk(names, 500) {
			var deletes []any
			for _, name := range some {
				deletes = append(deletes, &zk.DeleteRequest{Path: root + "/" + name, Version: -1})
			}
			if _, err := conn.Multi(deletes...); err == nil {
				continue
			}
			for _, name := range some { // the servers have removed one of them by themselves
				if err := conn.Delete(root+"/"+name, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
					return err
				}
			}
		}
	}
	return nil
}

// count returns how many znodes of a row's names exist.
func count(conn *zk.Conn, root, prefix string) (n int, err error) {
	names, _, err := conn.Children(root)
	for _, name := range names {
		if strings.HasPrefix(name, prefix+"-") {
			n++
		}
	}
	return n, err
}
