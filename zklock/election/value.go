package election

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/zklock/go-zklock/zklock"
)

// maxValue is the greatest length of a value, in bytes of JSON. The core may cut longer labels.
// One within maxValue fits in any case: if the data of a node exceeds its limit, other texts are
// cut.
const maxValue = 256

// checkValue returns why a value cannot be read by others as it is.
func checkValue(value string) error {
	if !utf8.ValidString(value) {
		return fmt.Errorf("%w: the value is not valid UTF-8: encode it", zklock.ErrConflict)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%w: the value: %w", zklock.ErrConflict, err)
	}
	if n := len(text) - len(`""`); n > maxValue {
		return fmt.Errorf("%w: the value has %d bytes with its escapes, and at most %d fit: shorten it", zklock.ErrConflict, n, maxValue)
	}
	return nil
}
