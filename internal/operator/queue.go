package operator

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zklock/go-zklock/zklock"
)

// Lock is a name with its queue, as JSON.
type Lock struct {
	Name       string      `json:"name"`
	Path       string      `json:"path"`
	Error      string      `json:"error,omitempty"` // why the queue is not known
	Contenders []Contender `json:"contenders"`
	LastSlot   string      `json:"last_slot,omitempty"`    // that has run under the name: see package once
	SlotSince  Millis      `json:"last_slot_at,omitempty"` // when that was recorded
}

// Contender is a contender as JSON. Session ids and zxids are strings: they exceed the integers
// that JavaScript has.
type Contender struct {
	Node      string   `json:"node"` // without its zxid
	Zxid      string   `json:"zxid"`
	Session   string   `json:"session"`
	Host      string   `json:"host"`
	PID       int      `json:"pid"`
	Label     string   `json:"label"`
	Trace     string   `json:"trace"`
	Mode      string   `json:"mode"`
	Held      bool     `json:"held"`
	Kept      bool     `json:"kept"`
	Candidacy bool     `json:"candidacy,omitempty"` // it waits and holds for long on purpose: a leader or a candidate
	Foreign   bool     `json:"foreign"`
	Revocable bool     `json:"revocable,omitempty"` // its program gets requests to give the lock back
	Revoked   string   `json:"revoked"`
	Late      int64    `json:"late_seconds,omitempty"` // how much later than it was sent its node was created; 0: less than 5, or not known
	Stray     bool     `json:"stray,omitempty"`        // no lock and no waiter of the client that shows it owns the node, which is its own
	Since     Millis   `json:"since"`                  // when its process asked for the lock, by its clock
	HeldSince Millis   `json:"held_since"`             // since when it has held, by the clock of the program that has watched it; usually not known
	Waits     []string `json:"waits_for"`              // the nodes that it waits for
	One       bool     `json:"waits_for_one"`
}

// ID returns NODE@ZXID, which no two contenders ever have in common.
func (c Contender) ID() string { return c.Node + "@" + c.Zxid }

// Process returns the host and the process id of a contender, as far as they are known.
func (c Contender) Process() string {
	switch {
	case c.Host != "" && c.PID != 0:
		return c.Host + "/" + strconv.Itoa(c.PID)
	case c.Host != "":
		return c.Host
	case c.PID != 0:
		return "process " + strconv.Itoa(c.PID)
	case c.Foreign:
		return "another library"
	}
	return "not named"
}

// Named returns the Process, with the beginning of the label if there is one. It is not escaped.
func (c Contender) Named() string {
	if c.Label == "" {
		return c.Process()
	}
	return c.Process() + ` "` + Short(c.Label) + `"`
}

// Lasts returns how long a contender has held, if that is known, or else how long ago it has asked; of a
// waiter, how long it has waited. "-" means that it is not known.
func (c Contender) Lasts(now time.Time) string {
	switch {
	case !c.Held && c.Since != 0:
		return c.Since.Age(now, false)
	case c.HeldSince != 0:
		return "held " + c.HeldSince.Age(now, false)
	case c.Since != 0:
		return "asked " + c.Since.Age(now, false) + " ago"
	}
	return "-"
}

// Identity returns what two contenders have in common if they are of one process, as far as that is known.
func (c Contender) Identity() string {
	if c.Host != "" && c.PID != 0 {
		return c.Process()
	}
	return c.Session
}

// Same reports whether two contenders may belong to one request: they are of the same trace or, if
// one of them has none, of the same process.
func (c Contender) Same(other Contender) bool {
	if c.Trace != "" && other.Trace != "" {
		return c.TraceID() == other.TraceID()
	}
	return c.Identity() == other.Identity()
}

// TraceID returns the id of the trace in the traceparent, or the text as it is.
func (c Contender) TraceID() string {
	if parts := strings.Split(c.Trace, "-"); len(parts) == 4 && len(parts[1]) == 32 {
		return parts[1]
	}
	return c.Trace
}

// Holders returns the contenders that hold the lock.
func (l Lock) Holders() (held []Contender) {
	for _, c := range l.Contenders {
		if c.Held {
			held = append(held, c)
		}
	}
	return held
}

// Role returns "leader" for a candidacy that holds the lock, "candidate" for one that waits, and ""
// for all other contenders.
func (c Contender) Role() string { return role(c.Candidacy, c.Held) }

// RoleOf is Role for a contender of package zklock.
func RoleOf(c zklock.Contender) string { return role(c.Candidacy, c.Held) }

func role(candidacy, held bool) string {
	switch {
	case !candidacy:
		return ""
	case held:
		return "leader"
	}
	return "candidate"
}

// Waiters returns how many contenders wait, without candidates: these wait on purpose.
func (l Lock) Waiters() int { return len(l.Contenders) - len(l.Holders()) - l.Candidates() }

// Candidates returns how many candidates wait to lead.
func (l Lock) Candidates() (n int) {
	for _, c := range l.Contenders {
		if c.Role() == "candidate" {
			n++
		}
	}
	return n
}

// Oldest returns since when the oldest waiter has waited, apart from candidates.
func (l Lock) Oldest() (since Millis) {
	for _, c := range l.Contenders {
		if !c.Held && !c.Candidacy && c.Since != 0 && (since == 0 || c.Since < since) {
			since = c.Since
		}
	}
	return since
}

// Show returns a queue as JSON has it. holds may be nil.
func Show(name, path string, queue []zklock.Contender, holds *Holds) Lock {
	l := Lock{Name: name, Path: path, Contenders: make([]Contender, len(queue))}
	for i, c := range queue {
		ahead, one := WaitsFor(queue, i)
		waits := make([]string, len(ahead))
		for n, at := range ahead {
			waits[n] = queue[at].Node
		}
		l.Contenders[i] = Contender{Node: c.Node, Zxid: Hex(c.Zxid), Session: Hex(c.Session), Host: c.Host, PID: c.PID,
			Label: c.Label, Trace: c.Trace, Mode: c.Mode.String(), Held: c.Held, Kept: c.Kept, Candidacy: c.Candidacy, Foreign: c.Foreign, Revocable: c.Revocable, Revoked: c.Revoked,
			Late: int64(c.Late / time.Second), Stray: c.Stray,
			Since: MillisOf(c.Since), Waits: waits, One: one}
	}
	holds.see(name, l.Contenders)
	return l
}

// UnmarshalJSON reads what MarshalJSON returns.
func (m *Millis) UnmarshalJSON(text []byte) error {
	var t time.Time
	err := json.Unmarshal(text, &t)
	*m = MillisOf(t)
	return err
}

// Count returns a number of things in words: "1 name", "2 names", "3 processes".
func Count(n int, thing string) string {
	switch {
	case n != 1 && strings.HasSuffix(thing, "s"):
		thing += "es"
	case n != 1:
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}

// Hex returns the id of a session or a transaction as ZooKeeper's tools print it.
func Hex(id int64) string { return "0x" + strconv.FormatUint(uint64(id), 16) }

// Revocation returns the line of a shell that asks a contender to give a lock back.
func Revocation(name string, c Contender) string {
	if strings.HasPrefix(name, "-") { // not a flag
		return "zklock revoke --reason '' -- " + quoted(name) + " " + quoted(c.ID())
	}
	return "zklock revoke " + quoted(name) + " " + quoted(c.ID()) + " --reason ''"
}

// quoted returns a text as one argument of a POSIX shell, in printable characters: what an operator copies from a
// terminal is the text.
func quoted(text string) string {
	if strings.ContainsFunc(text, unprintable) || !utf8.ValidString(text) {
		var b strings.Builder
		for i := range len(text) { // of printf, which each shell has
			switch c := text[i]; {
			case c == '%':
				b.WriteString("%%")
			case c == '\\' || c == '\'' || c == '-' && i == 0 || c < ' ' || c > '~':
				fmt.Fprintf(&b, `\%03o`, c)
			default:
				b.WriteByte(c)
			}
		}
		return `"$(printf '` + b.String() + `')"`
	}
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./@:%+", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Millis is a time in milliseconds since the Unix epoch; 0: not known.
type Millis int64

// MillisOf returns a time as Millis.
func MillisOf(t time.Time) Millis {
	if t.IsZero() {
		return 0
	}
	return Millis(t.UnixMilli())
}

// String returns the time in the form of RFC 3339, in UTC, always with milliseconds; "" for none.
func (m Millis) String() string {
	if m == 0 {
		return ""
	}
	return time.UnixMilli(int64(m)).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// MarshalJSON returns the String, and null for none.
func (m Millis) MarshalJSON() ([]byte, error) {
	if m == 0 {
		return []byte("null"), nil
	}
	return strconv.AppendQuote(nil, m.String()), nil
}

// Age returns how long ago the time was, in whole seconds, or in tenths if that is less than ten
// seconds and tenths are asked for.
func (m Millis) Age(now time.Time, tenths bool) string {
	if m == 0 {
		return ""
	}
	d := max(0, now.Sub(time.UnixMilli(int64(m))))
	if tenths && d < 10*time.Second {
		return d.Truncate(100 * time.Millisecond).String()
	}
	return d.Truncate(time.Second).String()
}
