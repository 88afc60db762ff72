package main

import (
	"fmt"
	"time"
)

// wait makes one process hold a name while the others wait for it. It counts what all of them
// write between two instants of that wait: the last one has queued before, and the first one gets
// the lock after.
func (b *runner) wait(who string, t team, name string, length time.Duration) (figures, error) {
	if _, err := t[0].ask("hold %s", name); err != nil {
		return nil, err
	}
	for _, p := range t[1:] {
		if err := p.send("hold %s", name); err != nil {
			return nil, err
		}
	}
	if err := b.queued(roots[who]+"/"+name, len(t)); err != nil {
		return nil, err
	}
	time.Sleep(2 * length) // more may follow the creation of a node
	before, err := b.servers.status()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	time.Sleep(10 * length)
	after, err := b.servers.status()
	if err != nil {
		return nil, err
	}
	minutes := time.Since(begin).Minutes()
	for _, p := range t[1:] {
		if len(p.lines) > 0 {
			return nil, fmt.Errorf("%s did not wait for %s: %s", p.name, name, <-p.lines)
		}
	}
	for _, p := range t {
		if err := p.send("release"); err != nil {
			return nil, err
		}
	}
	for i, p := range t {
		for range min(i, 1) + 1 { // the holder has answered hold already
			if _, err := p.answer("done", patience); err != nil {
				return nil, err
			}
		}
	}
	total := float64(len(t))
	return figures{"total": total, "writes": (after.zxid - before.zxid) / total / minutes}, nil
}

// queued waits until a znode has n children.
func (b *runner) queued(path string, n int) error {
	conn, err := connect(b.servers.hosts, rawRoot)
	if err != nil {
		return err
	}
	defer conn.Close()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		nodes, _, changed, err := conn.ChildrenW(path)
		if err != nil || len(nodes) == n {
			return err
		}
		select {
		case <-changed:
		case <-limit.C:
			return fmt.Errorf("%d of %d processes queued in %s within %v", len(nodes), n, path, patience)
		}
	}
}
