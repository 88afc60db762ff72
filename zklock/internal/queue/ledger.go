package queue

import (
	"bytes"
	"encoding/json"
	"strings"
)

// LedgerMark begins the name of a ledger, a znode below the root where package once notes what has
// run. No lock's znode is a ledger, or above or below one: Encode never writes the mark, and
// CheckName refuses it at the beginning of a name that is a path.
const LedgerMark = "~"

// Ledger returns the name, below the root, of the ledger of a lock. It is one segment in all
// dialects.
func Ledger(name string) string { return LedgerMark + encodeName(name) }

// OfLedger returns the name of the lock whose ledger a child of the root is. ok is false for a child that is none.
func OfLedger(node string) (name string, ok bool) {
	encoded, ok := strings.CutPrefix(node, LedgerMark)
	if !ok {
		return "", false
	}
	return decodeName(encoded)
}

// Page is what the znode of a ledger has.
type Page struct {
	// Slot is the highest slot that has run; "" if none has.
	Slot string `json:"slot"`

	// Token is the token of the lock under which the ledger was written last. It is for operators.
	Token string `json:"token"`
}

// pageMark begins the data of each ledger. The rest of the data is a Page in JSON.
var pageMark = []byte("zklock ledger ")

// Encode returns the data of a ledger with the page.
func (p Page) Encode() []byte {
	data, _ := json.Marshal(p) // impossible to fail for texts
	return append(bytes.Clone(pageMark), data...)
}

// DecodePage returns the page that the data of a ledger has. ok is false if another program has written them.
func DecodePage(data []byte) (p Page, ok bool) {
	text, ok := bytes.CutPrefix(data, pageMark)
	return p, ok && json.Unmarshal(text, &p) == nil
}
