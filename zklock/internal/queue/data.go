package queue

import "encoding/json"

// Limits on a queue node's data and the texts in it.
const (
	maxNodeData = 1 << 10

	MaxLabel = 256
	maxHost  = 255
	maxTrace = 256
)

// Data is what a queue node holds, as JSON: for people, and for the traces
// of those who wait behind it. Decisions are made by two of its fields only:
// that a writer counts as a reader, and that a permit was granted.
type Data struct {
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Label   string `json:"label,omitempty"`
	Mode    string `json:"mode"`
	Granted bool   `json:"granted,omitempty"` // a permit's node, rewritten when its turn had come
	Since   int64  `json:"since"`             // milliseconds since the Unix epoch
	Trace   string `json:"trace,omitempty"`
}

// Encode returns the bytes that Decode reads.
func (d Data) Encode() []byte {
	d.Host, d.Label, d.Trace = Truncate(d.Host, maxHost), Truncate(d.Label, MaxLabel), Truncate(d.Trace, maxTrace)
	for {
		b, err := json.Marshal(d)
		if err != nil {
			return nil // impossible for strings and numbers
		}
		if len(b) <= maxNodeData {
			return b
		}
		// Characters that JSON escapes take up to six times their size.
		d.Host, d.Label, d.Trace = Truncate(d.Host, len(d.Host)/2), Truncate(d.Label, len(d.Label)/2), Truncate(d.Trace, len(d.Trace)/2)
	}
}

// Decode reads a queue node's data, which may be anything: longer texts than
// encode writes are cut.
func Decode(data []byte) (d Data, ok bool) {
	if len(data) > 4096 || json.Unmarshal(data, &d) != nil {
		return Data{}, false
	}
	d.Host, d.Label, d.Trace = Truncate(d.Host, maxHost), Truncate(d.Label, MaxLabel), Truncate(d.Trace, maxTrace)
	return d, true
}

// Effective is the kind as which a contender counts: a writer's node whose data
// says that it is a reader's was downgraded by its holder.
func Effective(k Kind, d Data) Kind {
	if k.Mode == Exclusive && d.Mode == Shared.String() {
		return Kind{Mode: Shared}
	}
	return k
}
