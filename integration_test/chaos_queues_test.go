//go:build linux

package integration_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// queues prints every name's queue, the sessions and the watches, as each server has them.
// They show whether a contender was not removed, or a waiter was not woken.
func (c *chaos) queues() {
	for _, s := range c.ensemble.Servers() {
		queues := c.queuesOn(s)
		c.t.Logf("%v's queues:\n%s", s, queues)
		for _, word := range []string{"dump", "wchp", "cons"} {
			answer, err := s.FourLetter(word)
			c.t.Logf("%v's answer to %s (error %v):\n%s", s, word, err, answer)
		}
	}
}

// queuesOn returns every name's contenders on one server, in the order of the queue.
func (c *chaos) queuesOn(s *ensemble.Server) string {
	raw := dialRaw(c.t, s.Addr(), 10*time.Second)
	var b strings.Builder
	names, _, err := raw.Children(c.root)
	if err != nil {
		return err.Error()
	}
	slices.Sort(names)
	for _, name := range names {
		dir := c.root + "/" + name
		nodes, stat, err := raw.Children(dir)
		if err != nil {
			fmt.Fprintf(&b, "%s: %v\n", name, err)
			continue
		}
		fmt.Fprintf(&b, "%s: %d changes of its queue, the newest by transaction %#x\n", name, stat.Cversion, stat.Pzxid)
		slices.SortFunc(nodes, func(a, b string) int { return strings.Compare(sequence(a), sequence(b)) })
		for _, node := range nodes {
			fmt.Fprintf(&b, "    %s: %s\n", node, describeNode(raw, dir+"/"+node))
		}
	}
	return b.String()
}

// describeNode returns a contender's session, the transactions that wrote it, and its data.
func describeNode(raw *zk.Conn, path string) string {
	data, stat, err := raw.Get(path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("session %#x, created by transaction %#x, changed by %#x, %s", stat.EphemeralOwner, stat.Czxid, stat.Mzxid, data)
}

// sequence returns the sequence number at the end of a node's name.
func sequence(node string) string { return node[max(0, len(node)-10):] }

// nothingLeft checks, while all clients are still open, that no contender is left in any
// queue, and no watch on any server.
func (c *chaos) nothingLeft() {
	running := slices.DeleteFunc(c.ensemble.Servers(), func(s *ensemble.Server) bool { return !s.Running() })
	for _, s := range running {
		raw := dialRaw(c.t, s.Addr(), 10*time.Second)
		var left []string
		err := c.until("no contender is left", func() (done bool) {
			left, done = c.contenders(raw)
			return done && len(left) == 0
		})
		if err != nil {
			c.t.Errorf("%v: %v: %q", s, err, left)
			c.queues()
		}
	}
	watches := make([]float64, len(running))
	err := c.until("no watch is left", func() bool {
		for i, s := range running {
			stats, err := s.Stats()
			watches[i] = stats["watch_count"]
			if err != nil {
				watches[i] = -1
			}
		}
		return slices.Max(watches) == 0 && slices.Min(watches) == 0
	})
	if err != nil {
		c.t.Errorf("%v: %v", err, watches)
	}
}

// contenders returns all nodes in all queues, and whether all queues could be listed.
func (c *chaos) contenders(raw *zk.Conn) (nodes []string, all bool) {
	names, _, err := raw.Children(c.root)
	if err != nil {
		return nil, false
	}
	for _, name := range names {
		queue, _, err := raw.Children(c.root + "/" + name)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, false
		}
		for _, node := range queue {
			nodes = append(nodes, name+"/"+node)
		}
	}
	return nodes, true
}
