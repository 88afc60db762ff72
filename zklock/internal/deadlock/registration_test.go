package deadlock

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock/internal/local"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

func node(name string, zxid int64) local.NamedNode {
	return local.NamedNode{NodeID: place.NodeID{Path: "/root/" + name, Node: "n" + name, Zxid: zxid, Mode: queue.Exclusive}, Name: name}
}

func TestNameOfARegistration(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		for _, w := range randomWaits(r) {
			got, ok := parse(w.encode() + "0000000007")
			w.order, w.node = 7, got.node
			if !ok || !reflect.DeepEqual(got, *w) {
				t.Fatalf("%+v, %v, want %+v", got, ok, *w)
			}
		}
	}
	n := Nested{Behind: make([]local.Behind, maxMarks), Held: []local.NamedNode{node("x", 1)}}
	if _, ok := newWait("/root", id{}, &n); ok {
		t.Error("a registration with too many points")
	}
}

// A client deletes its znode by the name that the server has given it, whatever that is.
func TestNameThatIsNotUnderstoodIsKept(t *testing.T) {
	for name, order := range map[string]int64{"w2-x-0000000008": 0, (&namedWait{}).encode() + "0000000008": 8} {
		var w namedWait
		if w.named(name); w.node != name || w.order != order {
			t.Errorf("%+v, want the name %s and the order %d", w, name, order)
		}
	}
}

func TestDataOfARegistration(t *testing.T) {
	n := Nested{Behind: []local.Behind{{Node: node("y", 20), Itself: true}}, Held: []local.NamedNode{node("x", 10)}, Label: strings.Repeat("l", 1000)}
	w, _ := newWait("/root", id{1, 2}, &n)
	if w.behind[0].zxid != 21 || w.held[0].zxid != 10 {
		t.Errorf("%+v", w)
	}
	good := describe("/root", "h", 5, &n).encode()
	d, ok := decode("/root", &w, good)
	if !ok || d.Host != "h" || d.Held[0] != (described{"x", "/x", "nx"}) || len(d.Label) != queue.MaxLabel {
		t.Errorf("%+v, %v", d, ok)
	}
	for _, bad := range []string{"", "{", "{}", strings.Replace(string(good), `"/x"`, `"/y"`, 1), strings.Replace(string(good), `"nx"`, `"../nx"`, 1),
		strings.Replace(string(good), `"nx"`, `"a/b"`, 1), strings.Replace(string(good), `"held":[`, `"held":[{},`, 1), string(good) + strings.Repeat(" ", maxData)} {
		if _, ok := decode("/root", &w, []byte(bad)); ok {
			t.Errorf("accepted %.200s", bad)
		}
	}
}

// FuzzRegistration: no child of the register, whatever it is called and contains, does any harm.
func FuzzRegistration(f *testing.F) {
	n := Nested{Behind: []local.Behind{{Node: node("y", 20)}}, Held: []local.NamedNode{node("x", 10)}}
	w, _ := newWait("/root", id{1, 2}, &n)
	f.Add(w.encode()+"0000000001", describe("/root", "h", 5, &n).encode())
	f.Add("w1--0000000001", []byte("{}"))
	f.Add("w1-AAAA", []byte(nil))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		w, ok := parse(name)
		if !ok {
			return
		}
		if !strings.HasPrefix(name, w.encode()) && len(w.encode()) != len(name)-seqSize {
			t.Errorf("%q is read as %q", name, w.encode())
		}
		newGraph([]*namedWait{&w}).circle(&w)
		decode("/root", &w, data)
	})
}
