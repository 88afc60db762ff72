//go:build unix

package run

import (
	"slices"
	"testing"
)

// TestEnvironment: the variables of a run are in place of those of an outer run, without those that are empty. A name may end
// with "=".
func TestEnvironment(t *testing.T) {
	t.Setenv("ZKLOCK_SLOT", "outer")
	t.Setenv("ZKLOCK_HELD", "outer")
	env := Environment(Variables{Names: "x=", Token: "t"})
	for pair, want := range map[string]bool{"ZKLOCK_NAME=x=": true, "ZKLOCK_TOKEN=t": true, "ZKLOCK_SLOT=outer": false, "ZKLOCK_HELD=outer": false, "ZKLOCK_HELD=": false} {
		if slices.Contains(env, pair) != want {
			t.Errorf("%s: %v, want %v", pair, !want, want)
		}
	}
}
