package model

import (
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Describe implements System. Clients have letters, and nodes numbers in the order of the
// queue.
func (m Locks) Describe(from lockState, step Step, to lockState) string {
	var c string
	if step.Client >= 0 {
		c = string(rune('A' + step.Client))
	}
	var what string
	switch step.What {
	case acquire:
		if what = fmt.Sprintf("%s creates a node for %v", c, queue.Mode(step.Arg)); step.Arg < 0 {
			what = fmt.Sprintf("%s sends a create for %v, and loses the connection", c, queue.Mode(-step.Arg))
		}
	case replyComes:
		what = c + " reads the reply to its create"
	case createLate:
		what = [...]string{"a create of " + c + " is applied late", "a create of " + c + " is lost"}[step.Arg]
	case recovers:
		what = c + " syncs and looks for its node"
	case serverApplies:
		what = "the server of " + c + " applies a transaction"
	case lists:
		what = c + " lists the queue"
	case readsAhead:
		what = fmt.Sprintf("%s reads and watches node %d", c, step.Arg)
	case hearsEvent:
		what = fmt.Sprintf("%s gets the event of node %d", c, step.Arg)
	case hearsOwnGone:
		what = c + " gets the event of its own node"
	case readsOwn:
		what = c + " reads its own node"
	case marks:
		what = c + " marks its node"
	case sweeps:
		what = c + " deletes its stray nodes"
	case releases:
		what = c + " releases"
	case downgrades:
		what = c + " becomes a reader"
	case givesUpSession:
		what = c + " gives up its session"
	case contextsEnd:
		what = c + " ends its contexts"
	case nodeGoes:
		what = fmt.Sprintf("a session expires, and node %d goes", step.Arg)
	case operatorDeletes:
		what = fmt.Sprintf("an operator deletes node %d", step.Arg)
	case reconnects:
		what = c + " reconnects to another server"
	}
	return fmt.Sprintf("%-46s [%s]", what, m.picture(&to))
}

// picture shows the queue as committed, with what the clients do.
func (m Locks) picture(s *lockState) string {
	var parts []string
	for i, n := range s.nodes {
		if s.view(0)&(1<<i) == 0 {
			continue
		}
		owner := "-"
		for j, c := range s.clients[:m.Clients] {
			if c.own == int8(i) || c.twins&(1<<i) != 0 {
				owner = string(rune('A' + j))
			}
		}
		parts = append(parts, fmt.Sprintf("%d:%s %v", i, owner, n.mode))
	}
	var holders []string
	for j, c := range s.clients[:m.Clients] {
		if c.phase == holding || c.phase == closing {
			holders = append(holders, string(rune('A'+j)))
		}
	}
	if len(holders) > 0 {
		parts = append(parts, "held by "+strings.Join(holders, ", "))
	}
	return strings.Join(parts, "; ")
}
