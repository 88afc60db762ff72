package election

import (
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// Leader is what the ensemble shows of a leader: the candidate at the front of the queue. A
// candidate is at the front a moment before its Campaign returns. A leader whose process has
// died is at the front until its session has expired.
type Leader struct {
	// Value is the leader's value; see [WithValue]. "" for a leader of another library.
	Value string

	// Host is the leader's host; "" if its client leaves that out.
	Host string

	// PID is the leader's process id; 0 if its client leaves that out.
	PID int

	// Token is the token of the term. A later term has a greater one.
	Token zklock.Token

	// Since is when the leader began to stand for election, by its own clock. It may have
	// waited since then. It is zero for a leader of another library.
	Since time.Time

	// Node is the name of the leader's queue node, for [zklock.Client.Break].
	Node string
}

// leaderOf returns the leader among contenders: the first that holds. Readers and permits of
// the name do not lead. Contenders of two dialects may both seem to hold, because their recipes
// ignore each other. If the later one is zklock's, it gives up, so the earlier one leads, and
// tokens rise.
func leaderOf(contenders []zklock.Contender) (l Leader, ok bool) {
	for _, c := range contenders {
		if c.Held && c.Mode == zklock.Exclusive {
			return describe(c), true
		}
	}
	return Leader{}, false
}

// unreadable returns an error if the node of a leader cannot be read, which leaves its token
// unknown. That is so for a leader of another dialect whose node this client has no right to
// read.
func unreadable(l Leader) error {
	if l.Token.Zxid != 0 {
		return nil
	}
	return fmt.Errorf("%w: not authorized to read the leader's node %q: grant this client READ on it, or use one dialect", zklock.ErrUnavailable, l.Node)
}

// describe returns a contender that leads as a Leader. The turn of its token is 0: places of
// elections are not handed over.
func describe(c zklock.Contender) Leader {
	l := Leader{Value: c.Label, Host: c.Host, PID: c.PID, Token: zklock.Token{Zxid: c.Zxid}, Since: c.Since, Node: c.Node}
	if l.Value == "" && (l.Host != "" || l.PID != 0) {
		l.Value = fmt.Sprintf("%s/%d", l.Host, l.PID)
	}
	return l
}
