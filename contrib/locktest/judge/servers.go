package judge

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/txnlog"
)

// Servers is what the transaction logs of ZooKeeper servers say of the holds of a history. The servers and the processes of
// the run have the wall clock of one machine.
//
// Each hold needs a contender of a session of its process in the queue of its name: whose turn it was before the answer
// granted was read, and whose znode existed when the newest check was sent that was answered with held. Nothing that is
// late makes a mistake of that, since the servers decide before a client hears of it. A hold with a token of zklock's form
// needs the contender that the token's transaction has made.
type Servers struct {
	Judged   int // holds
	Unknown  int // holds of processes whose sessions are not known, and of names without a queue
	Early    int // holds that were granted before their contender's turn, or without one
	Tokens   int // holds with a token of another transaction than their contender's
	Outlived int // holds in which the library believed although their znode was gone

	// Expired is how many sessions with a hold the ensemble has expired.
	Expired int

	// Least is the least time from a moment at which the library surely believed in a hold to the end of such a session by
	// the leader's clock: less than nothing if a hold has outlived it.
	Least time.Duration

	// Jumped reports that the clock of a server jumped, so times say nothing, and only tokens were judged.
	Jumped bool

	// Mistakes says of each hold that is wrong what the logs have.
	Mistakes []string

	// Stuck are the contenders whose turn it is at the end of the logs.
	Stuck []string
}

// Passed reports whether no hold is wrong, and some were judged.
func (s Servers) Passed() bool {
	return s.Judged > 0 && s.Early == 0 && s.Tokens == 0 && s.Outlived == 0
}

// rounding is the resolution of the times in the logs.
const rounding = time.Millisecond

// ReadStays returns the contenders in the folders of the transaction logs of all voting servers. The logs must begin with the
// first transaction. There are none if the library has queues of another form.
func ReadStays(dirs []string) ([]*txnlog.Stay, error) {
	queues := txnlog.NewQueues(nil)
	for x, err := range txnlog.Committed(dirs, 0) {
		if err != nil {
			return nil, err
		}
		queues.Apply(x)
	}
	return queues.Stays(), nil
}

// JudgeServers judges a history by the contenders of the servers' logs.
func JudgeServers(events []history.Event, stays []*txnlog.Stay) Servers {
	r := newRoll(events, stays)
	s := Servers{Jumped: r.jumped}
	least := make(map[int64]time.Duration) // by session that has expired
	for _, h := range Holds(events) {
		of := r.of(h)
		if len(of) == 0 {
			s.Unknown++
			continue
		}
		s.Judged++
		zxid, known := transaction(h.Token)
		if known {
			made := slices.IndexFunc(of, func(c *txnlog.Stay) bool { return c.Zxid == zxid })
			if made < 0 {
				s.Tokens++
				s.Mistakes = append(s.Mistakes, r.mistake("the token is of another transaction", h, of))
				continue
			}
			of = of[made : made+1]
		}
		if r.jumped {
			continue
		}
		granted := r.wall(h.Granted)
		all := of
		of = slices.DeleteFunc(slices.Clone(of), func(c *txnlog.Stay) bool {
			turn := c.Turn
			if known && h.Shared {
				turn = c.SharedTurn
			}
			return turn.IsZero() || turn.After(granted) || gone(c, r.wall(h.Asked))
		})
		if len(of) == 0 {
			s.Early++
			s.Mistakes = append(s.Mistakes, r.mistake("granted before the turn of a contender", h, all))
			continue
		}
		if h.Sure == 0 {
			continue
		}
		sure := r.wall(h.Sure)
		longest := slices.MaxFunc(of, func(a, b *txnlog.Stay) int { return end(a).Compare(end(b)) })
		if gone(longest, sure) {
			s.Outlived++
			s.Mistakes = append(s.Mistakes, r.mistake("believed in after the znode was gone", h, []*txnlog.Stay{longest}))
		}
		if margin := end(longest).Sub(sure); longest.Expired {
			if known, ok := least[longest.Session]; !ok || margin < known {
				least[longest.Session] = margin
			}
		}
	}
	if s.Expired = len(least); s.Expired > 0 {
		s.Least = slices.Min(slices.Collect(maps.Values(least)))
	}
	for _, c := range stays {
		if c.Gone.IsZero() && !c.Turn.IsZero() {
			s.Stuck = append(s.Stuck, r.describe(c))
		}
	}
	return s
}

// never is later than each time of a run.
var never = time.Unix(1<<40, 0)

// end is when a contender's znode was deleted.
func end(c *txnlog.Stay) time.Time {
	if c.Gone.IsZero() {
		return never
	}
	return c.Gone
}

// gone reports whether a contender's znode surely did not exist any more at a time.
func gone(c *txnlog.Stay, at time.Time) bool { return end(c).Add(rounding).Before(at) }

var zklockToken = regexp.MustCompile(`^([0-9a-f]{16})\.[0-9a-f]{8}$`)

// transaction returns the transaction that a token of zklock names.
func transaction(t history.Token) (zxid int64, ok bool) {
	m := zklockToken.FindStringSubmatch(string(t))
	if m == nil {
		return 0, false
	}
	zxid, err := strconv.ParseInt(m[1], 16, 64)
	return zxid, err == nil
}

// roll is what connects a history and logs.
type roll struct {
	clocks []history.Event
	worker map[int64]int             // by session
	stays  map[string][]*txnlog.Stay // by name
	jumped bool
}

func newRoll(events []history.Event, stays []*txnlog.Stay) *roll {
	r := &roll{worker: make(map[int64]int), stays: make(map[string][]*txnlog.Stay)}
	for _, e := range events {
		switch e.Kind {
		case history.Clock:
			r.clocks = append(r.clocks, e)
		case history.Session:
			id, err := strconv.ParseUint(strings.TrimPrefix(e.Reason, "0x"), 16, 64)
			if _, known := r.worker[int64(id)]; err == nil && !known {
				r.worker[int64(id)] = e.Worker
			}
		case history.Fault:
			r.jumped = r.jumped || strings.HasPrefix(e.Reason, string(fault.JumpServer))
		}
	}
	for _, c := range stays {
		r.stays[c.Name] = append(r.stays[c.Name], c)
	}
	return r
}

// of returns the contenders that a hold may have had: those of its name and of its process.
func (r *roll) of(h Hold) (of []*txnlog.Stay) {
	for _, c := range r.stays[h.Name] {
		if r.worker[c.Session] == h.Worker {
			of = append(of, c)
		}
	}
	return of
}

// wall returns the time of the wall clock at a time of the history.
func (r *roll) wall(at int64) time.Time {
	i := sort.Search(len(r.clocks), func(i int) bool { return r.clocks[i].At > at })
	if len(r.clocks) == 0 {
		return time.Time{}
	}
	c := r.clocks[max(i-1, 0)]
	return time.Unix(0, c.Wall+at-c.At)
}

// mistake says what is wrong with a hold, and when the contenders that it may have had were there.
func (r *roll) mistake(what string, h Hold, of []*txnlog.Stay) string {
	at := func(at int64) string {
		if at == 0 {
			return "never"
		}
		return r.wall(at).UTC().Format(clock)
	}
	text := fmt.Sprintf("%s: %s, acquisition %d of worker %d, token %q, shared %v, permits %d, asked %s, granted %s, surely until %s", what, h.Name, h.ID, h.Worker, h.Token,
		h.Shared, h.Permits, at(h.Asked), at(h.Granted), at(h.Sure))
	for _, c := range of[max(len(of)-mostContenders, 0):] {
		text += fmt.Sprintf("; %s of session 0x%x, made by 0x%x at %s, turn %s, gone %s", c.Path, uint64(c.Session), c.Zxid, c.Created.UTC().Format(clock), c.Turn.UTC().Format(clock), c.Gone.UTC().Format(clock))
	}
	return text
}

const (
	clock          = "15:04:05.000"
	mostContenders = 3 // in the text of a mistake
)

// describe says whose contender keeps a name.
func (r *roll) describe(c *txnlog.Stay) string {
	return fmt.Sprintf("%s: %s of session 0x%x, worker %d, made by transaction 0x%x at %s, with its turn since %s, data %.200q", c.Name, c.Path, uint64(c.Session), r.worker[c.Session], c.Zxid,
		c.Created.UTC().Format(time.RFC3339Nano), c.Turn.UTC().Format(time.RFC3339Nano), c.Data)
}

// Table writes the figures, a line each, in the form of Markdown.
func (s Servers) Table(title string) string {
	var b strings.Builder
	row := func(what string, v any) { fmt.Fprintf(&b, "| %-44s | %12v |\n", what, v) }
	row(title+", by the servers' logs", "")
	fmt.Fprintf(&b, "|%s|%s:|\n", strings.Repeat("-", 46), strings.Repeat("-", 13))
	timed := func(n int) any {
		if s.Jumped {
			return "clock jumped"
		}
		return n
	}
	row("holds that were judged", s.Judged)
	row("holds of unknown sessions, or without a queue", s.Unknown)
	row("granted before the contender's turn", timed(s.Early))
	row("tokens of another transaction", s.Tokens)
	row("believed in after the znode was gone", timed(s.Outlived))
	row("sessions with a hold that expired", timed(s.Expired))
	if s.Expired > 0 && !s.Jumped {
		row("least time from belief to that", s.Least.Round(rounding))
	}
	return b.String()
}
