package queue

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// recipes has one node name of each recipe, taken from the real libraries, and the dialects
// that take that node for a contender. In the other dialects the error must name the dialect to
// use.
var recipes = []struct {
	name, node string
	mode       Mode
	dialects   string // those that take it for a contender
	use        string // the one that the error of the others names
}{
	{"InterProcessReadWriteLock.writeLock", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__WRIT__0000000003", Exclusive, "zklock", "zklock"},
	{"InterProcessReadWriteLock.readLock", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__READ__0000000003", Shared, "zklock", "zklock"},
	{"InterProcessMutex", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-0000000003", Exclusive, "curator zk", "curator"},
	{"zk.Lock", "_c_1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed-lock-0000000003", Exclusive, "curator zk", "zk"},
	{"kazoo Lock", "1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed__lock__0000000003", Exclusive, "kazoo", "kazoo"},
	{"kazoo ReadLock", "1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed__rlock__0000000003", Shared, "kazoo", "kazoo"},
	{"LeaderLatch", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-latch-0000000003", Exclusive, "latch", "latch"},
}

func TestEveryRecipeCountsInItsDialectsAndIsForeignInTheOthers(t *testing.T) {
	for _, r := range recipes {
		for _, d := range Dialects {
			q, other, ok := d.Parse(r.node)
			counts := strings.Contains(" "+r.dialects+" ", " "+d.Name+" ")
			switch {
			case ok != counts:
				t.Errorf("%s in dialect %s: is a contender: %v, want %v", r.name, d.Name, ok, counts)
			case ok && (q.Seq != 3 || q.Kind.Mode != r.mode || q.GUID == GUID{} || other != nil):
				t.Errorf("%s in dialect %s: parsed as %+v, of the foreign dialect %v", r.name, d.Name, q, other)
			case !ok && (other == nil || other.Name != r.use):
				t.Errorf("%s in dialect %s: is foreign, of dialect %+v; want dialect %s", r.name, d.Name, other, r.use)
			case ok && d.Walks(q):
				t.Errorf("%s in dialect %s: Walks is true for a node of another library", r.name, d.Name)
			}
		}
	}
}

// A client finds its own nodes again by their GUID, in every dialect.
func TestOwnNamesReadBack(t *testing.T) {
	for range 10_000 {
		g := GUID{rand.Int64()>>rand.IntN(63) | 1, rand.Uint64() >> (16 + rand.IntN(48))}
		d := Dialects[rand.IntN(len(Dialects))]
		k := Kind{Mode: Exclusive + Mode(rand.IntN(3))}
		if d.Allows(k) != nil {
			continue
		}
		if k.Mode == Permit {
			k.Permits = 1 + rand.IntN(10_000)
		}
		node := d.Prefix(g, k) + "0000000042"
		q, other, ok := d.Parse(node)
		if !ok || other != nil || q.GUID != g || q.Kind != k || q.Seq != 42 || q.Name != node {
			t.Fatalf("dialect %s: %q reads back as %+v, %v, %v", d.Name, node, q, other, ok)
		}
		if len(node) != d.NodeLength(k) {
			t.Fatalf("dialect %s: %q has %d bytes, NodeLength says %d", d.Name, node, len(node), d.NodeLength(k))
		}
		if d.Walks(q) != (d == Default) {
			t.Fatalf("dialect %s: Walks(%q) = %v", d.Name, node, d.Walks(q))
		}
	}
}

func TestNamesThatCouldPassForQueueNodesAreRefused(t *testing.T) {
	for _, name := range []string{
		"lock-0000000001", "orders/_c_1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed-lock-0000000003", "a__lock__0000000003/b", "a__rlock__0000000003",
		"a__WRIT__", "_c_x-__READ__0000000001", "block--000000001", "a/latch-0000000001", "lock--2147483648", "a\ue000", "a\ufff0", "a\U0001F512",
	} {
		for _, d := range Dialects {
			err := d.CheckName(name)
			if want := d.Literal(); (err != nil) != want || want && !errors.Is(err, errs.ErrInvalidName) {
				t.Errorf("dialect %s, name %q: error %v, want ErrInvalidName: %v", d.Name, name, err, want)
			}
		}
	}
	for _, name := range []string{"orders/42", "block-1", "lock-", "lock-000000001", "latch-", "latch-1", "a__lock__", "ähnlich 100%"} {
		for _, d := range Dialects {
			if err := d.CheckName(name); err != nil {
				t.Errorf("dialect %s, name %q: %v", d.Name, name, err)
			}
		}
	}
}
