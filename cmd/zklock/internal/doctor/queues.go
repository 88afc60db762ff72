package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

const (
	// shown is how many examples a finding has.
	shown = 3

	// maxSequence is the last number that ZooKeeper gives to a sequential node.
	maxSequence = 1<<31 - 1

	// skew is by how much the clock of a contender may be ahead of this machine's.
	skew = 5 * time.Second
)

// examples counts what was found, and keeps the first few.
type examples struct {
	n     int
	texts []string
}

func (e *examples) add(format string, args ...any) {
	if e.n++; e.n <= shown {
		e.texts = append(e.texts, fmt.Sprintf(format, args...))
	}
}

// String returns the examples in one line.
func (e *examples) String() string {
	text := strings.Join(e.texts, ", ")
	if e.n > shown {
		text += fmt.Sprintf(" and %d more", e.n-shown)
	}
	return text
}

// queues reports what is wrong with the names in use.
func (r *Report) queues(ctx context.Context, c *zklock.Client, maxBuffer int) {
	r.queuesAt(ctx, c, maxBuffer, time.Now())
}

// queuesAt is queues at a time by this machine's clock. It keeps only a few examples in memory.
func (r *Report) queuesAt(ctx context.Context, c *zklock.Client, maxBuffer int, now time.Time) {
	var names, contenders int
	shares := make(map[int64]*share)
	var orphans, late, foreign, used, ahead, unread examples
	for info, err := range c.Locks(ctx, "") {
		switch {
		case zklock.Reason(err) == rootMissing:
			continue
		case err != nil:
			unread.add("%v", err)
			continue
		}
		names++
		contenders += len(info.Contenders)
		isUsed := false
		for _, q := range info.Contenders {
			at := fmt.Sprintf("%q %s@%#x", info.Name, q.Node, q.Zxid)
			if q.Session != 0 {
				s := shares[q.Session]
				if s == nil {
					s = &share{of: fmt.Sprintf("%s/%d", q.Host, q.PID)}
					shares[q.Session] = s
				}
				s.nodes++
				s.bytes += 4 + len(info.Path) + len("/") + len(q.Node) // as a server counts
			}
			if q.Session == 0 && q.Zxid != 0 {
				orphans.add("%s", at)
			}
			if q.Late > 0 {
				late.add("%s of %s/%d by %v", at, q.Host, q.PID, q.Late.Truncate(time.Second))
			}
			if q.Foreign {
				foreign.add("%s", at)
			}
			if !isUsed && sequence(q.Node) > maxSequence/10*9 {
				isUsed = true
				used.add("%q is at %d", info.Name, sequence(q.Node))
			}
			if d := q.Since.Sub(now); d > skew {
				ahead.add("%s/%d by %v", q.Host, q.PID, d.Truncate(time.Second))
			}
		}
	}
	none := r.ok
	if unread.n > 0 {
		none = func(what, format string, args ...any) { // what cannot be read may have it
			r.unknown(what, "of the queues that can be read: "+format, args...)
		}
		r.toDo("queues", numbered(unread.n, "1 list of names or of contenders", "%d lists of names or of contenders")+fmt.Sprintf(" cannot be read: %v", &unread), "grant READ there, and look at the servers' logs")
	}
	if unread.n > 0 && names == 0 {
		r.unknown("queues", "none can be read, so contenders, sequence numbers and clocks are not known")
		return
	}
	none("queues", "%s in use, with %s", numbered(names, "1 name", "%d names"), numbered(contenders, "1 contender", "%d contenders"))
	r.fullest(shares, maxBuffer)
	if orphans.n > 0 {
		r.toDo("orphans", numbered(orphans.n, "1 contender belongs to no session, so it never goes: ", "%d contenders belong to no session, so they never go: ")+orphans.String(), "find the program that makes them, stop it, and delete them with zklock release NAME NODE@ZXID")
	} else {
		none("orphans", "none: every contender goes with its session")
	}
	if late.n > 0 {
		r.warn("late", numbered(late.n, "1 contender was created long after it was sent: ", "%d contenders were created long after they were sent: ")+late.String(), "a caller that gave up leaves such a contender, and its client deletes it within a session timeout: look again, ask the process, and then delete it with zklock release NAME NODE@ZXID. If all contenders of a process are late, set its clock")
	} else {
		none("late", "none: every contender was created soon after it was sent")
	}
	if foreign.n > 0 {
		r.warn("foreign", numbered(foreign.n, "1 contender is that of another library or dialect: ", "%d contenders are those of other libraries or dialects: ")+foreign.String(), "set dialect to that of the other library, in the URL of all zklock clients, or use another root")
	} else {
		none("foreign", "none: all contenders are of the client's dialect")
	}
	if used.n > 0 {
		r.toDo("sequence", "the sequence numbers of "+numbered(used.n, "1 name", "%d names")+" are almost used up: "+used.String(), "stop using these names until their znodes are gone, or delete the znodes")
	} else {
		none("sequence", "no name has used up its sequence numbers")
	}
	if ahead.n > 0 {
		r.warn("clock", numbered(ahead.n, "the clock of 1 contender is", "the clocks of %d contenders are")+" ahead of this machine's: "+ahead.String(), "synchronize the clocks: locks do not depend on that, but the ages in lists do")
	} else {
		none("clock", "no contender's clock is ahead of this machine's")
	}
}

// sequence returns the sequence number in the name of a queue node; 0 if there is none.
func sequence(node string) int64 {
	const digits = 10
	if len(node) < digits {
		return 0
	}
	n, err := strconv.ParseInt(node[len(node)-digits:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
