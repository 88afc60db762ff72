package zklock

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Contender is a queue node as others see it: a process that holds a name or
// waits for it. Goroutines that queue behind one node inside a process do not
// show. Nor does a hand-over inside a process, which writes nothing: Label, Trace
// and Since stay those of the acquisition that the node was made for, as long as
// the process keeps it.
type Contender struct {
	// Node is the name of the queue node, below the lock's znode.
	Node string

	// Host is the contender's host, if it told.
	Host string

	// Label is the text given with WithLabel by whom the node was made for.
	Label string

	// Trace is the traceparent of the request that took the place in the queue.
	Trace string

	// PID is the contender's process id, if it told.
	PID int

	// Mode is how the lock is held or wanted.
	Mode Mode

	// Held says that it is the contender's turn, by its place in the queue.
	Held bool

	// Foreign says that the node was made by another library, or in another
	// dialect than the client's.
	Foreign bool

	// Since is when the place was taken, by the contender's clock.
	Since time.Time
}

// Names of queue nodes are, in the default dialect, those of Curator's
// InterProcessReadWriteLock, so that its locks and ours exclude each other:
//
//	_c_<uuid>-__WRIT__<10 digits>      wants the lock for itself
//	_c_<uuid>-__READ__<10 digits>      wants it together with other readers
//	_c_<uuid>-__PERM<n>__<10 digits>   wants one of n permits; Curator has none such
//
// The UUID finds our node again after a create whose reply was lost. It is the
// session's id and a counter, so that a node of another session, even one of
// this process, is never taken for ours.
const (
	protectedPrefix = "_c_"
	writeMarker     = "__WRIT__"
	readMarker      = "__READ__"
	permitMarker    = "__PERM"
	markerEnd       = "__"
	uuidLen         = 36
	suffixLen       = 10
)

// maxSequence is where a name's sequence numbers are treated as used up. The
// last 2^20 are left unused because servers from 3.6 on repeat 2^31-1 once they
// reach it, and older ones go negative: no comparison can mend either.
const maxSequence = 1<<31 - 1<<20

// guid identifies one enqueue of one session.
type guid struct {
	session int64
	serial  uint64
}

// String returns the guid in the form of a UUID.
func (g guid) String() string {
	var b [uuidLen]byte
	n := 0
	for i, c := range g.digits() {
		if i == 8 || i == 12 || i == 16 || i == 20 {
			b[n] = '-'
			n++
		}
		b[n] = c
		n++
	}
	return string(b[:])
}

// digits returns the guid in 32 hex digits.
func (g guid) digits() (b [uuidHexLen]byte) {
	const hex = "0123456789abcdef"
	session := uint64(g.session)
	for i := range 16 {
		shift := 60 - 4*i
		b[i], b[16+i] = hex[session>>shift&0xf], hex[g.serial>>shift&0xf]
	}
	return b
}

// parseGUID reads what String and hex wrote. Other people's UUIDs parse as well,
// to some session's id that is not ours.
func parseGUID(s string) (guid, bool) {
	var hex [uuidHexLen]byte
	switch {
	case len(s) == uuidHexLen:
		copy(hex[:], s)
	case len(s) == uuidLen && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-':
		n := 0
		for i := range len(s) {
			if i == 8 || i == 13 || i == 18 || i == 23 {
				continue
			}
			hex[n] = s[i]
			n++
		}
	default:
		return guid{}, false
	}
	session, ok1 := parseHex(hex[:16])
	serial, ok2 := parseHex(hex[16:])
	return guid{int64(session), serial}, ok1 && ok2
}

func parseHex(digits []byte) (uint64, bool) {
	var n uint64
	for _, c := range digits {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			n = n<<4 | uint64(c-'a'+10)
		case 'A' <= c && c <= 'F':
			n = n<<4 | uint64(c-'A'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// marker is the part of a queue node's name that says what it wants.
func (k kind) marker() string {
	switch k.mode {
	case Shared:
		return readMarker
	case Permit:
		return permitMarker + strconv.Itoa(k.permits) + markerEnd
	}
	return writeMarker
}

// queued is a queue node as a decision sees it.
type queued struct {
	node string
	seq  int64
	kind kind
	guid guid // zero if the node's name has none
}

// cutMarker splits a node's name around its last marker.
func cutMarker(node string) (head, suffix string, k kind, ok bool) {
	if i := strings.LastIndex(node, writeMarker); i >= 0 {
		return node[:i], node[i+len(writeMarker):], kind{mode: Exclusive}, true
	}
	if i := strings.LastIndex(node, readMarker); i >= 0 {
		return node[:i], node[i+len(readMarker):], kind{mode: Shared}, true
	}
	if i := strings.LastIndex(node, permitMarker); i >= 0 {
		digits, suffix, found := strings.Cut(node[i+len(permitMarker):], markerEnd)
		if n, err := strconv.Atoi(digits); found && err == nil && n > 0 && strconv.Itoa(n) == digits {
			return node[:i], suffix, kind{mode: Permit, permits: n}, true
		}
	}
	return "", "", kind{}, false
}

func parseSuffix(s string) int64 {
	if len(s) != suffixLen {
		return maxSequence
	}
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return maxSequence
		}
		n = n*10 + int64(s[i]-'0')
	}
	return min(n, maxSequence)
}

// sortQueue puts contenders in the order in which they get the lock. The GUID
// in front of the suffix never counts.
func sortQueue(q []queued) {
	slices.SortFunc(q, func(a, b queued) int { return int(a.seq - b.seq) })
}

// Limits on a queue node's data and the texts in it.
const (
	maxNodeData = 1 << 10

	maxLabel = 256
	maxHost  = 255
	maxTrace = 256
)

// nodeData is what a queue node holds, as JSON: for people, and for the traces
// of those who wait behind it. Decisions are made by two of its fields only:
// that a writer counts as a reader, and that a permit was granted.
type nodeData struct {
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Label   string `json:"label,omitempty"`
	Mode    string `json:"mode"`
	Granted bool   `json:"granted,omitempty"` // a permit's node, rewritten when its turn had come
	Since   int64  `json:"since"`             // milliseconds since the Unix epoch
	Trace   string `json:"trace,omitempty"`
}

func (d nodeData) encode() []byte {
	d.Host, d.Label, d.Trace = truncate(d.Host, maxHost), truncate(d.Label, maxLabel), truncate(d.Trace, maxTrace)
	for {
		b, err := json.Marshal(d)
		if err != nil {
			return nil // impossible for strings and numbers
		}
		if len(b) <= maxNodeData {
			return b
		}
		// Characters that JSON escapes take up to six times their size.
		d.Host, d.Label, d.Trace = truncate(d.Host, len(d.Host)/2), truncate(d.Label, len(d.Label)/2), truncate(d.Trace, len(d.Trace)/2)
	}
}

// decodeData reads a queue node's data, which may be anything.
func decodeData(data []byte) (d nodeData, ok bool) {
	ok = len(data) <= 4096 && json.Unmarshal(data, &d) == nil
	return d, ok
}

// describe makes a Contender of a queue node and its data.
func describe(q queued, data []byte) Contender {
	c := Contender{Node: q.node, Mode: q.kind.mode}
	d, ok := decodeData(data)
	if !ok {
		c.Foreign = true
		return c
	}
	c.Host, c.PID, c.Label, c.Trace = truncate(d.Host, maxHost), d.PID, truncate(d.Label, maxLabel), truncate(d.Trace, maxTrace)
	if d.Since > 0 {
		c.Since = time.UnixMilli(d.Since)
	}
	c.Mode = effective(q.kind, d).mode
	return c
}

// effective is the kind as which a contender counts: a writer's node whose data
// says that it is a reader's was downgraded by its holder.
func effective(k kind, d nodeData) kind {
	if k.mode == Exclusive && d.Mode == Shared.String() {
		return kind{mode: Shared}
	}
	return k
}
