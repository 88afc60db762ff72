package inspect

import (
	"testing"

	"github.com/zklock/go-zklock/internal/operator"
)

// TestStateOfALateContender: the text says that a node is left over, or may be.
func TestStateOfALateContender(t *testing.T) {
	for want, c := range map[string]operator.Contender{
		"holds":                            {Held: true},
		"holds (created 12s late)":         {Held: true, Late: 12},
		"left over (created 12s late)":     {Held: true, Late: 12, Stray: true},
		"left over":                        {Stray: true},
		"waits (asked to give it back: x)": {Revoked: "x"},
	} {
		if got := stateOf(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
