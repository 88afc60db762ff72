package txnlog

import (
	"cmp"
	"encoding/json"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Stay is the time of a contender in the queue of a name: of the znode that one acquisition, or several one after the other,
// had made. Times are those of the leader's wall clock.
type Stay struct {
	Name    string // of the lock: the last part of the parent's path, decoded
	Path    string // of the znode
	Session int64  // that it ends with
	Zxid    int64  // of the transaction that made it

	Shared  bool // it holds together with others that are shared; a writer's znode may have become one
	Permits int  // how many hold together; 0: it wants the whole lock

	Created time.Time // when the znode was made
	Turn    time.Time // when no contender ahead excluded it any more; zero: never
	Gone    time.Time // when the znode was deleted; zero: it is still there

	// SharedTurn is when no contender ahead excluded one that is shared any more; zero: never. A client of zklock grants a writer's znode
	// to its readers then, and after that writes into its data that it is theirs.
	SharedTurn time.Time

	Closed  bool  // it was deleted because its client has closed its session
	Expired bool  // it was deleted because the ensemble has expired its session
	By      int64 // the session whose transaction deleted it

	Data []byte // of the znode, the newest
}

// contender is how a name of a znode begins, its kind, and the number that the server has added. Recipes put it before or
// after their ids: zklock and Curator's read-write lock; zk.Lock and Curator's mutex; kazoo; Curator's leader latch. The
// judge of a library must not use the library's code, so the rules of the queue stand here again.
var contender = regexp.MustCompile(`(__WRIT__|__READ__|__PERM(\d+)__|lock-|latch-|__lock__|__rlock__)(\d{10})$`)

// seen is a stay with what decides about its turn.
type seen struct {
	*Stay
	seq int
}

// Queues are the queues of an ensemble's names, while transactions are applied. The zero value has none.
type Queues struct {
	tree   Tree
	queues map[string][]seen // by parent, in order
	stays  []*Stay
}

// NewQueues returns queues that begin with a tree, such as that of a snapshot.
func NewQueues(t *Tree) *Queues {
	q := new(Queues)
	if t == nil {
		return q
	}
	q.tree = *t
	for _, z := range t.nodes {
		q.enter(z)
	}
	for parent := range q.queues {
		q.turns(parent, time.Time{}) // when that was is not known
	}
	return q
}

// Stays returns the stays so far, in the order of their creation. They change with further transactions.
func (q *Queues) Stays() []*Stay { return q.stays }

// Apply applies a transaction.
func (q *Queues) Apply(x Txn) {
	ends := slices.ContainsFunc(x.Ops, func(o Op) bool { return o.Kind == CloseSession })
	changed := make(map[string]bool)
	for _, z := range q.tree.Apply(x) {
		parent := path.Dir(z.Path)
		of := q.queues[parent]
		i := slices.IndexFunc(of, func(s seen) bool { return s.Path == z.Path })
		if i < 0 {
			continue
		}
		of[i].Gone, of[i].Closed, of[i].Expired, of[i].By = x.Time, ends && x.Request != 0, ends && x.Request == 0, x.Session
		if q.queues[parent] = slices.Delete(of, i, i+1); len(q.queues[parent]) == 0 {
			delete(q.queues, parent)
		}
		changed[parent] = true
	}
	for _, o := range x.Ops {
		if o.Kind != Create && o.Kind != SetData {
			continue
		}
		z := q.tree.At(o.Path)
		if z == nil {
			continue // a later operation has deleted it, or the transaction was refused
		}
		parent := path.Dir(o.Path)
		switch of := q.queues[parent]; o.Kind {
		case Create:
			changed[parent] = q.enter(z) || changed[parent]
		default:
			if i := slices.IndexFunc(of, func(s seen) bool { return s.Path == z.Path }); i >= 0 {
				of[i].Data = o.Data
				of[i].Shared = of[i].Shared || lowered(o.Data)
				changed[parent] = true
			}
		}
	}
	for parent := range changed {
		q.turns(parent, x.Time)
	}
}

// enter puts a znode into the queue of its name, if it is a contender.
func (q *Queues) enter(z *Znode) bool {
	m := contender.FindStringSubmatch(path.Base(z.Path))
	if m == nil || z.Owner == 0 {
		return false
	}
	parent := path.Dir(z.Path)
	name, err := url.PathUnescape(path.Base(parent))
	if err != nil {
		name = path.Base(parent)
	}
	seq, err := strconv.Atoi(m[3])
	if err != nil {
		return false
	}
	permits, _ := strconv.Atoi(m[2]) // "" is 0
	s := &Stay{
		Name: name, Path: z.Path, Session: z.Owner, Zxid: z.Zxid, Created: z.Created, Data: z.Data,
		Shared: m[1] == "__READ__" || m[1] == "__rlock__" || lowered(z.Data), Permits: permits,
	}
	if q.queues == nil {
		q.queues = make(map[string][]seen)
	}
	of := q.queues[parent]
	at, there := slices.BinarySearchFunc(of, seq, func(o seen, seq int) int { return cmp.Compare(o.seq, seq) })
	if there && of[at].Path == z.Path {
		return false // a snapshot had it
	}
	q.queues[parent] = slices.Insert(of, at, seen{s, seq})
	q.stays = append(q.stays, s)
	return true
}

// lowered reports whether the data say that a writer's znode has become a reader's.
func lowered(data []byte) bool {
	var d struct{ Mode string }
	return json.Unmarshal(data, &d) == nil && d.Mode == "shared"
}

// turns notes whose turn it is in a queue.
func (q *Queues) turns(parent string, at time.Time) {
	exclusive := false // one ahead is
	for i, s := range q.queues[parent] {
		turn := i == 0 || s.Permits > 0 && i < s.Permits || s.Shared && !exclusive
		if turn && s.Turn.IsZero() {
			s.Turn = latest(at, s.Created)
		}
		if !exclusive && s.SharedTurn.IsZero() {
			s.SharedTurn = latest(at, s.Created)
		}
		exclusive = exclusive || !s.Shared
	}
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
