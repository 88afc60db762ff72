package zkdriver

import "encoding/binary"

// readable checks the results of a transaction, up to the header that marks their end, and
// changes them so that the client can read them. It returns their new length. ok is false
// if they are truncated.
//
// The result for a container has another type than that of other creates (servers use
// create2), and a Stat behind the path. The client does not know such a result: it would
// stop with an error although the transaction was applied. So it gets the result of a plain
// create instead.
func readable(body []byte) (length int, ok bool) {
	const header = 4 + 1 + 4 // type, done, error
	keep := func(b []byte) { length += copy(body[length:], b) }
	for rest := body; ; {
		if len(rest) < header {
			return 0, false
		}
		size, extra := header, 0 // the lengths of what the client gets of this result, and of what it does not get
		switch kind, done := int32(binary.BigEndian.Uint32(rest)), rest[4] != 0; {
		case done:
			keep(rest)
			return length, true
		case kind == opErrorRes:
			size += 4
		case kind == opSetData:
			size += statLen
		case kind == opCreate, kind == opCreate2, kind == opContainer:
			behind, ok := skipBuffer(rest[header:])
			if !ok {
				return 0, false
			}
			size = len(rest) - len(behind)
			if kind != opCreate {
				extra = statLen
				binary.BigEndian.PutUint32(rest, opCreate)
			}
		case kind == opDelete, kind == opCheck:
		default:
			keep(rest) // the client stops here too, with an error
			return length, true
		}
		if len(rest) < size+extra {
			return 0, false
		}
		keep(rest[:size])
		rest = rest[size+extra:]
	}
}
