package queue

import (
	"encoding/binary"
	"encoding/hex"
)

// GUID identifies one queue node: the session that made it, and a number that the session has
// used only once. A client thus finds its node again after a create whose reply was lost, and
// never takes a node of another session for its own, not even of another session of its process.
type GUID struct {
	Session int64
	Serial  uint64
}

// keepBit is the bit of a serial number that marks a contender that its client may keep in
// the queue between two uses. The mark is in the name, so that a try, which lists the queue,
// sees it without a further read.
const keepBit = 1 << 47

// looksBit is the bit of a serial number that marks a contender for a permit that holds only after a look at the queue. One without
// it may be granted by the count of children: see Decide.
const looksBit = 1 << 46

// Lengths of a GUID's two forms as text.
const (
	hexLen  = 32
	uuidLen = hexLen + 4
)

// Keepable returns the guid of a contender that its client may keep.
func (g GUID) Keepable() GUID {
	g.Serial |= keepBit
	return g
}

// Looking returns the guid of a contender for a permit that is granted by a look at the queue only.
func (g GUID) Looking() GUID {
	g.Serial |= looksBit
	return g
}

// Looks reports whether the contender's client says that.
func (g GUID) Looks() bool { return g.Serial&looksBit != 0 }

// String returns the guid in the form of a UUID.
func (g GUID) String() string {
	b := g.digits()
	s := string(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// hex returns the guid as 32 hexadecimal digits.
func (g GUID) hex() string {
	b := g.digits()
	return string(b[:])
}

func (g GUID) digits() (b [hexLen]byte) {
	var raw [hexLen / 2]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(g.Session))
	binary.BigEndian.PutUint64(raw[8:], g.Serial)
	hex.Encode(b[:], raw[:])
	return b
}

// parseGUID reads the texts that String and hex write; any other text yields the zero GUID. The
// UUID of another library yields an id that is not the id of this client's session.
func parseGUID(s string) GUID {
	if len(s) == uuidLen && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		s = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	var b [hexLen / 2]byte
	if len(s) != hexLen {
		return GUID{}
	}
	if _, err := hex.Decode(b[:], []byte(s)); err != nil {
		return GUID{}
	}
	return GUID{int64(binary.BigEndian.Uint64(b[:8])), binary.BigEndian.Uint64(b[8:])}
}
