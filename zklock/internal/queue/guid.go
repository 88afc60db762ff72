package queue

// GUID identifies one queue node: the session that made it, and a number which that
// session has used only once; see keepBit for one of its bits.
type GUID struct {
	Session int64
	Serial  uint64
}

// keepBit is the bit of a serial number that marks a contender which its client may keep in
// the queue between two uses. The mark is in the name, so that a try, which lists the queue,
// sees it without a further read.
const keepBit = 1 << 47

// Kept returns the guid of a contender that its client may keep.
func (g GUID) Kept() GUID {
	g.Serial |= keepBit
	return g
}

// String returns the guid in the form of a UUID.
func (g GUID) String() string {
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

// digits returns the guid as 32 hexadecimal digits.
func (g GUID) digits() (b [uuidHexLen]byte) {
	const hex = "0123456789abcdef"
	session := uint64(g.Session)
	for i := range 16 {
		shift := 60 - 4*i
		b[i], b[16+i] = hex[session>>shift&0xf], hex[g.Serial>>shift&0xf]
	}
	return b
}

// parseGUID reads the texts that String and hex write. UUIDs of other libraries can be
// parsed, too; they yield an id that is not the id of this client's session.
func parseGUID(s string) (GUID, bool) {
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
		return GUID{}, false
	}
	session, ok1 := parseHex(hex[:16])
	serial, ok2 := parseHex(hex[16:])
	return GUID{int64(session), serial}, ok1 && ok2
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
