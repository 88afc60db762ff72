package deadlock

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"path"
	"slices"
	"strconv"

	"github.com/zklock/go-zklock/zklock/internal/local"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Nested is a nested wait at a moment.
type Nested struct {
	Behind []local.Behind    // what it stands behind
	Held   []local.NamedNode // what its context holds, each node once; a Node is "" if only a caller in another process knows it
	Label  string
	Trace  string
}

// equal reports whether two moments of a wait differ in nothing that others have to know.
func (n *Nested) equal(o *Nested) bool {
	return slices.Equal(n.Behind, o.Behind) && slices.Equal(n.Held, o.Held)
}

// A registration's name has all that the search for a circle needs, so that one list of the register
// shows the whole graph. Its data have the rest, which only the waits of a circle need: the names of
// locks and nodes, and what an error says of each wait.
//
//	w1-<base64>-<10 digits>
//
// The ten digits are the server's, and give the order of the registrations. The bytes are, with all
// numbers big-endian:
//
//	8 client, 4 serial number   so that a client finds its own registration after a lost reply
//	4 number of the wait        so that it finds the earlier ones of the same wait
//	1 the number of points that the wait stands behind, then for each of these:
//	    8 hash of the lock's path below the root, 8 zxid (1 more if the node itself counts), 1 mode
//	then for each node that it holds:
//	    8 hash, 8 zxid, 1 mode
const (
	prefix   = "w1-"
	idSize   = 16 // with the number of the wait
	markSize = 17
	seqSize  = 10

	// maxMarks bounds the points and the nodes of a registration. A wait that has more is not
	// registered.
	maxMarks = 64

	maxData = 48 << 10
)

// mark is a point or a node in a registration's name.
type mark struct {
	lock uint64 // hash of the lock's path
	zxid int64
	mode queue.Mode
}

// node returns the mark of a node without the mode in which its holder has it.
func (m mark) node() mark { return mark{lock: m.lock, zxid: m.zxid} }

// id identifies a registration: the client, and a number that the client has used once.
type id struct {
	client uint64
	serial uint32
}

// namedWait is a registration as its name shows it.
type namedWait struct {
	id     id
	number uint32 // of the wait: all its registrations have it, and no other one of the client
	order  int64  // of the registrations
	node   string // its name; "" if the register could not be written, and only this client knows it
	behind []mark // a zxid is 1 more than that of the point if the point itself counts
	held   []mark
}

// hash returns the hash of a lock's path. The data have the paths, which differ for locks of one hash.
func hash(root, p string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p[min(len(root), len(p)):])) // never fails
	return h.Sum64()
}

// newWait returns a nested wait as its registration's name shows it. ok is false if it has too many
// points and nodes.
func newWait(root string, i id, n *Nested) (w namedWait, ok bool) {
	if len(n.Behind)+len(n.Held) > maxMarks {
		return namedWait{}, false
	}
	w.id = i
	for _, b := range n.Behind {
		m := mark{hash(root, b.Node.Path), b.Node.Zxid, b.Node.Mode}
		if b.Itself {
			m.zxid++
		}
		w.behind = append(w.behind, m)
	}
	for _, h := range n.Held {
		w.held = append(w.held, mark{hash(root, h.Path), h.Zxid, h.Mode})
	}
	return w, true
}

// encode returns the wait's name without the server's digits.
func (w *namedWait) encode() string {
	b := make([]byte, 0, idSize+1+markSize*(len(w.behind)+len(w.held)))
	b = binary.BigEndian.AppendUint64(b, w.id.client)
	b = binary.BigEndian.AppendUint32(b, w.id.serial)
	b = binary.BigEndian.AppendUint32(b, w.number)
	b = append(b, byte(len(w.behind)))
	for _, m := range slices.Concat(w.behind, w.held) {
		b = binary.BigEndian.AppendUint64(b, m.lock)
		b = binary.BigEndian.AppendUint64(b, uint64(m.zxid))
		b = append(b, byte(m.mode))
	}
	return prefix + base64.RawURLEncoding.EncodeToString(b) + "-"
}

// named takes over the name that the server has given the registration. It keeps one that it does not
// understand, too: else the znode would not be deleted.
func (w *namedWait) named(node string) {
	w.node = node // TestNameThatIsNotUnderstoodIsKept
	if made, ok := parse(node); ok {
		w.order = made.order
	}
}

// parse reads a registration's name. ok is false for all other names: other programs may have made
// them, or a later version.
func parse(name string) (w namedWait, ok bool) {
	if len(name) < len(prefix)+1+seqSize || name[:len(prefix)] != prefix {
		return namedWait{}, false
	}
	body, digits := name[len(prefix):len(name)-seqSize-1], name[len(name)-seqSize:]
	order, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return namedWait{}, false
	}
	b, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || len(b) < idSize+1 || (len(b)-idSize-1)%markSize != 0 {
		return namedWait{}, false
	}
	w.node, w.order = name, int64(order)
	w.id, w.number = id{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])}, binary.BigEndian.Uint32(b[12:])
	behind, b := int(b[idSize]), b[idSize+1:]
	if len(b)/markSize > maxMarks || behind > len(b)/markSize {
		return namedWait{}, false
	}
	for i := 0; len(b) > 0; i++ {
		m := mark{binary.BigEndian.Uint64(b), int64(binary.BigEndian.Uint64(b[8:])), queue.Mode(b[16])}
		if b = b[markSize:]; !m.mode.Known() {
			return namedWait{}, false
		}
		if i < behind {
			w.behind = append(w.behind, m)
		} else {
			w.held = append(w.held, m)
		}
	}
	return w, true
}

// description is the data of a registration.
type description struct {
	Host   string      `json:"host,omitempty"`
	PID    int         `json:"pid,omitempty"`
	Label  string      `json:"label,omitempty"`
	Trace  string      `json:"trace,omitempty"`
	Behind []described `json:"behind"`
	Held   []described `json:"held"`
}

// described is a point or a node, in the same order as in the registration's name.
type described struct {
	Name string `json:"name"` // of the lock
	Path string `json:"path"` // of the lock's znode, below the root
	Node string `json:"node,omitempty"`
}

// describe returns a wait's description.
func describe(root, host string, pid int, n *Nested) description {
	d := description{Host: host, PID: pid, Label: n.Label, Trace: n.Trace}
	for _, b := range n.Behind {
		d.Behind = append(d.Behind, described{b.Node.Name, b.Node.Path[len(root):], b.Node.Node})
	}
	for _, h := range n.Held {
		d.Held = append(d.Held, described{h.Name, h.Path[len(root):], h.Node})
	}
	return d
}

// encode returns the data of the registration.
func (d description) encode() []byte {
	b, err := json.Marshal(d)
	if err != nil {
		return nil // impossible for texts and numbers
	}
	return b
}

// decode reads the data of the registration w. ok is false if they do not describe what its name says.
func decode(root string, w *namedWait, data []byte) (d description, ok bool) {
	if len(data) > maxData || json.Unmarshal(data, &d) != nil || len(d.Behind) != len(w.behind) || len(d.Held) != len(w.held) {
		return description{}, false
	}
	for i, m := range slices.Concat(w.behind, w.held) {
		e := slices.Concat(d.Behind, d.Held)[i]
		if len(e.Name) > queue.MaxName || len(e.Path) < 2 || e.Path != path.Clean(e.Path) || e.Path[0] != '/' || path.Base(e.Node) != cmp.Or(e.Node, ".") || hash("", e.Path) != m.lock {
			return description{}, false
		}
	}
	d.Host, d.Label, d.Trace = queue.Truncate(d.Host, queue.MaxLabel), queue.Truncate(d.Label, queue.MaxLabel), queue.Truncate(d.Trace, queue.MaxLabel)
	return d, true
}
