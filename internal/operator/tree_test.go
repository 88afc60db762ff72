package operator

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// A lock is written as its name and its queue: holders in upper case, which are all before a colon, and
// candidacies with a star.
func locksOf(text string) (locks []Lock) {
	zxid := int64(0)
	for part := range strings.SplitSeq(text, "; ") {
		name, queue, _ := strings.Cut(part, ": ")
		l := Lock{Name: name}
		for process := range strings.FieldsSeq(queue) {
			process, candidacy := strings.CutSuffix(process, "*")
			host, trace, _ := strings.Cut(process, "/")
			zxid++
			l.Contenders = append(l.Contenders, Contender{Node: strings.ToLower(host), Host: strings.ToLower(host), PID: 1, Trace: trace, Zxid: Hex(zxid), Held: host < "a", Candidacy: candidacy, Session: "0x1"})
		}
		locks = append(locks, l)
	}
	return locks
}

// deadlocksOf returns a deadlock, written as processes with what they hold and wait for. Nodes have the names of
// their processes. With an @, a caller holds.
func deadlocksOf(text string) []*zklock.DeadlockError {
	if text == "" {
		return nil
	}
	d := &zklock.DeadlockError{}
	for part := range strings.SplitSeq(text, ", ") {
		process, names, _ := strings.Cut(part, " ")
		process, byCaller := strings.CutPrefix(process, "@")
		l := zklock.DeadlockLink{Host: process, PID: 1, Node: process}
		if byCaller {
			l.Node = ""
		}
		l.Held, l.Waiting, _ = strings.Cut(names, ">")
		d.Cycle = append(d.Cycle, l)
	}
	return []*zklock.DeadlockError{d}
}

// nestedOf returns registered waits, written as the process that holds, its name, and the one that it waits for.
func nestedOf(text string, locks []Lock) (found []zklock.NestedWait) {
	for part := range strings.FieldsSeq(text) {
		process, names, _ := strings.Cut(part, ":")
		w := zklock.NestedWait{}
		w.Held, w.Waiting, _ = strings.Cut(names, ">")
		for _, l := range locks {
			for _, c := range l.Contenders {
				if l.Name == w.Held && c.Host == process {
					w.Zxid, _ = strconv.ParseInt(c.Zxid, 0, 64)
				}
			}
		}
		found = append(found, w)
	}
	return found
}

// The tree goes from a name's holders to what these wait for, and from its waiters to what these
// block; the mover is the end of the chain.
func TestTree(t *testing.T) {
	for _, c := range []struct{ locks, dead, want, mover string }{ // dead: deadlocks, or with a + registered waits
		{"x: A b c", "", "a holds", "x a"},
		{"x: A b; y: C a", "", "a holds | a waits for y || c holds", "y c"},
		{"x: A b; y: C a; z: D c e", "", "a holds | a waits for y || c holds ||| c waits for z |||| d holds", "z d"},
		{"x: A b; y: B a", "", "a holds | a waits for y || b holds ||| b circle x", ""},
		{"x: A b; y: B c d", "", "a holds b blocks y", "x a"},
		{"x: A b; y: B c; z: C d", "", "a holds b blocks y | c blocks z", "x a"},
		{"x: A B c", "", "a holds b holds", "x a"},
		{"x: A B C D E F G h", "", "a holds b holds c holds d holds e holds others", "x a"},
		{"x: A/1 b; y: C a/2", "", "a holds | a perhaps y || c holds", "x a"},   // another request of the process
		{"x: A/1 b; y: C d/1", "", "a holds | d waits for y || c holds", "y c"}, // the same request, passed on
		{"x: a", "", "", ""},
		{"x: A* b* c*", "", "", ""},  // an idle election
		{"x: A; y: B c", "", "", ""}, // nothing waits
		{"x: A; y: B a", "", "a holds | a waits for y || b holds", "y b"}, // except its holder
		// What is registered: the requests of one process share a queue node of what they wait for.
		{"x: A/2 b; y: C a/1", "+a:x>y", "a holds | waits for y sure || c holds", "y c"},
		{"x: A/2; y: C a/1", "+a:x>y", "a holds | waits for y sure || c holds", "y c"},
		{"y: C a/1; x: A/2 b; z: A/1 d", "+a:x>y", "c holds a blocks z a blocks", "y c"},
		{"x: A/2 b; y: C a/1; z: D a/2 c", "+a:x>y c:y>z", "a holds | waits for y sure || c holds ||| c waits for z sure |||| d holds", "z d"},
		{"x: A/1 b; y: B a/1", "+a:x>y b:y>x", "a holds | a waits for y sure || b holds ||| b circle x sure", ""},
		{"x: A/2 b; y: C a/1; z: D a/3; w: E c d", "+a:x>y a:x>z c:y>w d:z>w",
			"a holds | waits for y sure || c holds ||| c waits for w sure |||| e holds | waits for z sure || d holds ||| d waits for w sure", "w e"},
		{"a: A b; b: B a; c: C b", "", "a holds | a waits for b || b holds ||| b circle a ||| b waits for c |||| c holds", "c c"},
		{"x: A b; y: C a; z: A d", "+a:z>y", "a holds | a perhaps y || c holds", "x a"}, // the process has registered another wait, and not this one
		{"x: A b; y: C a; z: A d; w: E a", "+a:z>y", "a holds | a perhaps y || c holds | a perhaps w || e holds", "x a"},
		{"x: A/1 b; y: C a/1; z: A d", "+a:z>y", "a holds | a waits for y || c holds", "y c"}, // the trace says that it is this one
		{"x: A b; y: B a; z: C a", "", "a holds | a waits for y || b holds ||| b circle x | a waits for z || c holds", "z c"},
		{"x: A b; y: C", "+b:x>y", "a holds", "x a"}, // of a contender that is not there any more
		{"x: A/1 b; y: C a/2 D; z: D/1 a/3", "", "a holds | a perhaps y || c holds || d holds | a perhaps z || d holds", "x a"},
		{"x: A* b* c", "", "a holds", "x a"},       // one without a candidacy waits for the leader
		{"x: A b; y: C* a*", "", "a holds", "x a"}, // a candidate elsewhere works meanwhile
		{"x: A b; y: A* c*; z: D a", "", "a holds | a waits for z || d holds", "z d"},
		{"x: A* b* c; y: B d", "", "a holds", "x a"}, // a candidate keeps none of its others waiting
		{"x: A b; y: B c* d", "", "a holds b blocks y", "x a"},
		{"x: A b; y: B* c*", "", "a holds", "x a"},
		// Deadlocks that are known. One whose nodes are not the holders is behind these.
		{"x: A b; y: B a", "b y>x, a x>y", "a holds | deadlock || b member y>x ends || a member x>y", ""},
		{"z: C d; x: A c b; y: B a", "b y>x, a x>y", "c holds | c waits for || a holds ||| deadlock |||| b member y>x ends |||| a member x>y", ""},
		{"x: A b; y: B c a", "b y>x, a x>y", "a holds | deadlock || b member y>x ends || a member x>y", ""},
		{"x: A b; y: C a; z: D c", "b y>x, a x>y", "a holds | deadlock || b member y>x ends || a member x>y", ""},
		{"x: D a b; y: B a", "b y>x, a x>y", "d holds deadlock | b member y>x ends | a member x>y", ""},
		{"x: D a b; y: B a", "b y>x, @a x>y", "d holds | deadlock || b member y>x ends || a member x>y", ""},
		{"x: A c; y: B a", "d v>w, e w>v", "a holds | a waits for y || b holds", "y b"},
	} {
		locks := locksOf(c.locks)
		var got []string
		var known Register
		if nested, ok := strings.CutPrefix(c.dead, "+"); ok {
			known.Nested = nestedOf(nested, locks)
		} else {
			known.Dead = deadlocksOf(c.dead)
		}
		for _, b := range Tree(locks[0], locks, known) {
			text := strings.Repeat("|", b.Depth) + " " + b.Contender.Host + " " + string(b.Relation)
			switch {
			case b.Relation == Member:
				if text += " " + b.Name + ">" + b.Waiting; b.Ends {
					text += " ends"
				}
			case b.Relation == Deadlock:
			case b.Name != "x" && b.Relation != Holding || b.Relation == Circle:
				text += " " + b.Name
			}
			if b.Sure {
				text += " sure"
			}
			got = append(got, strings.Join(strings.Fields(text), " "))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.locks, text, c.want)
		}
		mover := ""
		if name, m, ok := Mover(locks[0], locks, known); ok {
			mover = name + " " + m.Host
		}
		if mover != c.mover {
			t.Errorf("%s: the mover is %q, want %q", c.locks, mover, c.mover)
		}
	}
}

// A holder that has just come may wait for what its process waits for: its client registers that a moment later.
func TestYoungHolderMayWait(t *testing.T) {
	for age, want := range map[time.Duration]string{time.Second: "y", time.Minute: "x"} {
		locks := locksOf("x: A b; y: C a; z: A d")
		locks[0].Contenders[0].Since = MillisOf(time.Now().Add(-age))
		if name, _, ok := Mover(locks[0], locks, Register{Nested: nestedOf("a:z>y", locks)}); !ok || name != want {
			t.Errorf("of a holder that asked %v ago: the end holds %q, %v, want %q", age, name, ok, want)
		}
	}
}

// A chain leads to its end, however long it is: its middle is a victim.
func TestLongChain(t *testing.T) {
	var text []string
	const hops = 20
	for i := range hops {
		text = append(text, fmt.Sprintf("n%02d: H%02d h%02d", i, i, i-1))
	}
	locks := locksOf(strings.Join(text, "; "))
	name, c, ok := Mover(locks[0], locks, Register{})
	if !ok || name != "n19" || c.Host != "h19" {
		t.Errorf("the end of %d names is %q, held by %q, %v", hops, name, c.Host, ok)
	}
}

func TestDeadlockOfOneWait(t *testing.T) {
	d := &zklock.DeadlockError{Cycle: []zklock.DeadlockLink{{Host: "web", PID: 1, Held: "s", Waiting: "s"}}}
	lines := Circles([]*zklock.DeadlockError{d})
	if len(lines) != 2 {
		t.Fatal(lines)
	}
	if got := lines[0].String(time.Now()); got != "deadlock: this wait waits, perhaps over others, for what it holds" {
		t.Error(got)
	}
}

// A line for a shell is one word for each argument, and printable.
func TestRevocation(t *testing.T) {
	c := Contender{Node: "n", Zxid: "0x2"}
	for _, name := range []string{`a\b`, `%d\n 'x' "$y"`, "n\u202e%s\u200bé'\\", "a\xffb", "-\u2066", "Café"} {
		line, at := Revocation(name, c), "$2"
		if name[0] == '-' {
			at = "$5"
		}
		got, err := exec.Command("sh", "-c", `zklock() { printf %s "`+at+`"; }; `+line).Output()
		if err != nil || string(got) != name || Printable(line) != line {
			t.Errorf("%s: the argument is %q, %v, want %q", line, got, err, name)
		}
	}
	for name, want := range map[string]string{"orders/42": "orders/42", "a b": "'a b'", "it's": `'it'\''s'`, "$(rm)": "'$(rm)'"} {
		if got := Revocation(name, c); got != "zklock revoke "+want+" n@0x2 --reason ''" {
			t.Errorf("%s", got)
		}
	}
	if got := Revocation("-x", c); got != "zklock revoke --reason '' -- -x n@0x2" {
		t.Errorf("%s", got)
	}
}

// Times have milliseconds, also if these are 0, and null if they are not known.
func TestMillis(t *testing.T) {
	at := MillisOf(time.Unix(1e9, 0))
	for m, want := range map[Millis]string{0: "null", at: `"2001-09-09T01:46:40.000Z"`, at + 5: `"2001-09-09T01:46:40.005Z"`} {
		text, err := json.Marshal(m)
		var back Millis
		if err != nil || string(text) != want || json.Unmarshal(text, &back) != nil || back != m {
			t.Errorf("%d: %s, %v, and back %d; want %s", m, text, err, back, want)
		}
	}
}

// A holder has held since a look that follows one in which it did not, if the two are near.
func TestHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Holds
		see := func(queue string, want string) {
			t.Helper()
			l := locksOf("x: " + queue)[0]
			h.see("x", l.Contenders)
			var got []string
			for _, c := range l.Contenders {
				got = append(got, c.HeldSince.Age(time.Now(), false))
			}
			if text := strings.Join(got, ","); text != want {
				t.Errorf("%s: %q, want %q", queue, text, want)
			}
			time.Sleep(time.Second)
		}
		see("A b", ",")
		see("A b", ",")
		see("B c", "0s,")
		see("B c", "1s,")
		time.Sleep(time.Minute)
		see("C", "") // it was granted the lock some time in a minute
		see("D", "0s")
		began := h.Begin()
		time.Sleep(time.Second)
		h.End(began) // x was not in use
		see("E", "0s")
		early := h.Begin()
		see("E", "1s")
		late := h.Begin()
		h.End(early) // the other round has not seen x yet
		see("E", "2s")
		h.End(late)
		see("E", "3s")
		time.Sleep(time.Minute)
		h.Unchanged()
		see("F", "0s")
		time.Sleep(2 * forgotten)
		if h.Begin(); len(h.looks) != 0 {
			t.Errorf("%d looks of long ago are kept", len(h.looks))
		}
		var fresh Holds
		h2 := locksOf("y: A")[0]
		fresh.see("y", h2.Contenders)
		if h2.Contenders[0].HeldSince != 0 {
			t.Error("the first look knows since when a holder holds")
		}
	})
}
