package queue

import (
	"bytes"
	"fmt"

	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// An operator asks a holder to give its lock back by a change of the data of the holder's node. A
// node of this library gets the reason into its JSON, and keeps what else is there. Curator's
// Revoker replaces all data by one message, and its holders look for exactly that message. So a
// node of Curator gets it, and a node of this library may have it: then other contenders no longer
// see which process holds the lock.

// CuratorRevokes is the message of Curator's Revoker, which is all data of the node. It is
// also the reason of such a request, because that has no other.
const CuratorRevokes = "__REVOKE__"

// MaxReason is the length of the longest reason of a request, in bytes.
const MaxReason = 256

// noReason is the reason of a request that gives none. A node with an empty reason would be
// one without a request.
const noReason = "no reason given"

// Revoke returns the data of a contender's node after a request to give the lock back. data
// is what the node has now. The error matches ErrConflict if the contender belongs to a
// library that cannot be asked.
func Revoke(node string, data []byte, reason string) ([]byte, error) {
	q, of, _ := classify(node)
	switch {
	case of == nil:
		return nil, fmt.Errorf("%w: %q is not the name of a queue node", errs.ErrConflict, node)
	case q.Ours():
		d, _ := Decode(data)
		if d.Revoked = Truncate(reason, MaxReason); d.Revoked == "" {
			d.Revoked = noReason
		}
		return d.Encode(), nil
	case of == Default, of == dialectCurator:
		return []byte(CuratorRevokes), nil
	}
	return nil, fmt.Errorf("%w: %s cannot be asked to give a lock back: use Break if the holder hangs", errs.ErrConflict, of.serves)
}

// Revocation returns the reason if a node's data ask the holder to give the lock back; "" if they
// do not, which costs little.
func Revocation(data []byte) string {
	if !bytes.Contains(data, []byte(`"revoked"`)) && string(data) != CuratorRevokes {
		return ""
	}
	d, _ := Decode(data)
	return d.Revoked
}
