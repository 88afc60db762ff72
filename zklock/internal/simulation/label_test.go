package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// nodeLabel is the label in a queue node's data, and what it may be.
//
// Once SetLabel has returned nil, the node has that label until a later SetLabel or the end
// of the hold, whatever else the library writes into the data.
type nodeLabel struct {
	is     string       // according to the log
	calls  []*labelling // the calls that may have set it
	setter *grip        // the holder whose SetLabel has returned nil last; nil: none
}

// labelling is a call of SetLabel.
type labelling struct {
	label  string
	called int64 // in events
	over   int64 // when it returned, in events; 0: it has not
}

// labelOf returns the label in the data of a queue node.
func labelOf(data []byte) string {
	_, rest, _ := strings.Cut(string(data), `"label":"`)
	label, _, _ := strings.Cut(rest, `"`)
	return label
}

// labelHeld makes the worker label a lock that it holds, and turn it into a reader's at the
// same time if it is asked to.
func (k *worker) labelHeld(g *grip, lower bool) {
	d, after := k.w.between(time.Microsecond, simTimeout), k.w.between(time.Microsecond, 5*time.Millisecond)
	if !lower {
		k.assign("label", func() {
			defer k.become(holding)
			k.label(g, d)
		})
		return
	}
	k.assign("label and downgrade", func() {
		defer k.become(holding)
		var both sync.WaitGroup
		both.Go(func() { k.label(g, d) })
		time.Sleep(after)
		k.downgrade(g, d)
		both.Wait()
	})
}

// label gives a lock a label that no other has.
func (k *worker) label(g *grip, limit time.Duration) {
	ctx, cancel := context.WithTimeout(background, limit)
	defer cancel()
	k.labels++
	l := k.w.model.labels(g, fmt.Sprintf("label-%d.%d", k.id, k.labels))
	err := g.handle().SetLabel(ctx, l.label)
	k.w.trace.note("worker %d: labelled %v", k.id, class(err))
	k.expect("label", err, zklock.ErrLost, zklock.ErrUnavailable, context.DeadlineExceeded)
	k.w.model.labelled(g, l, err)
}

// labels records that a handle is about to be labelled.
func (m *model) labels(g *grip, label string) *labelling {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked()
	l := &labelling{label: label, called: m.history.tick()}
	for name := range g.modes {
		if n := m.nodeLocked(g, name); n != nil {
			n.label.calls = append(n.label.calls, l)
		}
	}
	return l
}

// labelled records the outcome of that.
func (m *model) labelled(g *grip, l *labelling, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked()
	l.over = m.history.tick()
	if err != nil {
		return // the node may have it, now or later
	}
	m.w.tally.labelled++
	for name := range g.modes {
		if n := m.nodeLocked(g, name); n != nil {
			n.label.calls = slices.DeleteFunc(n.label.calls, func(other *labelling) bool { return other.over != 0 && other.over < l.called })
			n.label.setter = g
			m.labelLocked(n)
		}
	}
}

// labelLocked checks the label of a node against what SetLabel has confirmed.
func (m *model) labelLocked(n *queueNode) {
	g := n.label.setter
	if g == nil || g.back || !g.lock.Valid() {
		return
	}
	if !slices.ContainsFunc(n.label.calls, func(l *labelling) bool { return l.label == n.label.is }) {
		m.violateLocked("label", "others read %q as the label of %v, although SetLabel has confirmed %q", n.label.is, g, n.label.calls[len(n.label.calls)-1].label)
		n.label.setter = nil
	}
}
