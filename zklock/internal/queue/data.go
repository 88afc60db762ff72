package queue

import (
	"cmp"
	"encoding/json"
)

// Limits on a queue node's data and the texts in it, in bytes.
const (
	maxNodeData = 1 << 10

	MaxLabel = 256
	maxHost  = 255
	maxTrace = 256
)

// Data is the content of a queue node, as JSON. It is for operators, and for the traces of waiters
// behind the node. Decisions depend on two of its fields only: Mode can say that a writer's node
// has become a reader's, and Granted that a permit was granted.
type Data struct {
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Label   string `json:"label,omitempty"`
	Mode    string `json:"mode"`
	Granted bool   `json:"granted,omitempty"` // set in a permit's node when its turn has come
	Keep    bool   `json:"keep,omitempty"`    // its client may keep the node between uses; so what describes a holder may be of an earlier one
	Since   int64  `json:"since"`             // milliseconds since the Unix epoch
	Sent    int64  `json:"sent,omitempty"`    // when the node's create was sent, in the same way; 0: soon after Since
	Trace   string `json:"trace,omitempty"`
	Revoked string `json:"revoked,omitempty"` // the reason with which the holder is asked to give the lock back; see Revoke

	Candidacy bool `json:"candidacy,omitempty"` // the wait and the hold are meant to be long, as those of an election
	Revocable bool `json:"revocable,omitempty"` // its caller gets requests to give the lock back
}

// Encode returns d as JSON of at most maxNodeData bytes. It truncates texts that are too
// long.
func (d Data) Encode() []byte {
	d.truncate()
	for {
		b, err := json.Marshal(d)
		if err != nil {
			return nil // impossible for strings and numbers
		}
		if len(b) <= maxNodeData {
			return b
		}
		// Characters that JSON escapes take up to six times their size. Another client gives the
		// reason of a request, which must not cost the texts of the holder any length. A label
		// that has at most MaxLabel bytes with its escapes is never cut here: the value of a
		// leader is one, and other programs may use it as an address.
		label, _ := json.Marshal(d.Label) // impossible to fail for a text
		switch {
		case len(d.Revoked) > len(noReason):
			d.Revoked = Truncate(d.Revoked, max(len(d.Revoked)/2, len(noReason)))
		case len(label)-len(`""`) > MaxLabel:
			d.Label = Truncate(d.Label, len(d.Label)/2)
		default:
			d.Host, d.Trace = Truncate(d.Host, len(d.Host)/2), Truncate(d.Trace, len(d.Trace)/2)
		}
	}
}

// Decode reads a queue node's data. Any client may have written it: ok is false if it is
// neither such JSON nor the message of Curator's Revoker. Texts that are longer than those of
// Encode are truncated.
func Decode(data []byte) (d Data, ok bool) {
	if string(data) == CuratorRevokes {
		return Data{Revoked: CuratorRevokes}, true
	}
	if len(data) > 4096 || json.Unmarshal(data, &d) != nil {
		return Data{}, false
	}
	d.truncate()
	return d, true
}

// soon is by how much a create may be sent after Since without a Sent in its node, in milliseconds:
// most nodes do without.
const soon = 1000

// SendAt notes when the node's create is sent, in milliseconds since the Unix epoch.
func (d *Data) SendAt(at int64) {
	if d.Sent = at; at-d.Since < soon {
		d.Sent = 0
	}
}

// Asked replaces Since. The data still say when the node's create was sent.
func (d *Data) Asked(since int64) {
	if d.Since != since && d.Sent == 0 {
		d.Sent = d.Since
	}
	d.Since = since
}

// Late returns how much later than it was sent a node was created, in milliseconds, if the servers
// created it at the time created. It returns 0 if that is not known.
func (d *Data) Late(created int64) int64 {
	sent := cmp.Or(d.Sent, d.Since)
	if sent == 0 || created == 0 {
		return 0
	}
	return max(created-sent, 0)
}

// truncate truncates the texts that are too long.
func (d *Data) truncate() {
	d.Host, d.Label, d.Trace, d.Revoked = Truncate(d.Host, maxHost), Truncate(d.Label, MaxLabel), Truncate(d.Trace, maxTrace), Truncate(d.Revoked, MaxReason)
}

// Effective returns the kind as which a contender counts. A holder that downgrades its
// write lock writes a reader's mode into the data of its node, whose name stays a writer's: see
// Row.LowersTo. No other mode in the data counts.
func Effective(k Kind, d Data) Kind {
	if k.Mode.Lowers() && d.Mode == k.Mode.Lowered().String() {
		return Kind{Mode: k.Mode.Lowered()}
	}
	return k
}
