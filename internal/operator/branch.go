package operator

import (
	"fmt"
	"time"
)

// Mover returns the process that has to move so that the waiters of a lock go on: the end of the
// chain of holders that wait themselves, with the name that it holds; false if nothing holds the
// lock, or the chain is a circle. It follows no wait that is perhaps another request's.
func Mover(l Lock, locks []Lock, known Register) (name string, c Contender, ok bool) {
	return EndOf(l.Name, Tree(l, locks, known))
}

// EndOf returns the Mover of a tree: its first holder with nothing below. A circle that may be one, past which the chain goes
// on, does not hide it.
func EndOf(of string, tree []Branch) (name string, c Contender, ok bool) {
	name = of
	perhaps := len(tree) + maxDepth // what is deeper is below a wait that is perhaps another request's
	for i, b := range tree {
		if b.Depth > perhaps {
			continue
		}
		perhaps = len(tree) + maxDepth
		below := i+1 < len(tree) && tree[i+1].Depth > b.Depth && tree[i+1].Relation != Perhaps
		switch {
		case b.Relation == Deadlock:
			return name, c, false
		case b.Relation == Others || b.Relation == Blocks || ok && b.Depth == 0:
			return name, c, ok
		case b.Relation == Perhaps:
			perhaps = b.Depth
		case b.Relation == Holding && !ok && !below:
			name, c, ok = b.Name, b.Contender, true
		}
	}
	return name, c, ok
}

// String returns the line as text, without its depth.
func (b Branch) String(now time.Time) string {
	c := b.Contender
	switch b.Relation {
	case Holding:
		return c.Named() + " " + c.verb() + " " + b.Name + ", " + c.Lasts(now)
	case WaitsElsewhere:
		return b.Subject() + " waits for " + b.Name + b.waited(now)
	case Perhaps:
		return "perhaps it waits for " + b.Name + ", as another request of its process does" + b.waited(now)
	case Circle:
		return b.Subject() + " waits for " + b.Name + b.waited(now) + b.Doubt()
	case Deadlock:
		if b.Count == 1 {
			return "deadlock: this wait waits, perhaps over others, for what it holds"
		}
		return fmt.Sprintf("deadlock: each of these %d waits for the next, and the last for the first", b.Count)
	case Member:
		text := c.Named() + " holds " + b.Name
		if c.Node == "" {
			text += ", by a caller,"
		}
		text += " and waits for " + b.Waiting
		if b.Ends {
			text += ": this wait fails, and the others go on"
		}
		return text
	case Blocks:
		return fmt.Sprintf("%s waits here, and its process holds %s: %d wait for that", c.Named(), b.Name, b.Count)
	}
	return fmt.Sprintf("and %d more hold %s", b.Count, b.Name)
}

// Subject returns how a line calls what waits for another name: the holder above it, or only its process.
func (b Branch) Subject() string {
	if b.Sure {
		return "it"
	}
	return "its process"
}

// Doubt returns what a line says of a Circle.
func (b Branch) Doubt() string {
	if b.Sure {
		return ": a circle, which is not a deadlock yet, or not any more"
	}
	return ": a circle, if one request does both; it is not registered as a deadlock"
}

// verb returns what a holder does.
func (c Contender) verb() string {
	if c.Candidacy {
		return "leads"
	}
	return "holds"
}

// waited returns how long the contender has waited, if that is known.
func (b Branch) waited(now time.Time) string {
	if b.Contender.Since == 0 {
		return ""
	}
	return ", since " + b.Contender.Since.Age(now, false)
}
