// Package fips skips the tests that cannot run in a process with GODEBUG=fips140=only.
package fips

import (
	"os"
	"strings"
	"testing"
)

// Mode is the setting of GODEBUG with which a process may use nothing that FIPS 140 does not allow.
const Mode = "fips140=only"

// Only reports whether this process has the setting.
func Only() bool { return strings.Contains(os.Getenv("GODEBUG"), Mode) }

// Skip skips a test that needs what the mode forbids.
func Skip(t testing.TB, what string) {
	t.Helper()
	if Only() {
		t.Skipf("FIPS 140 forbids %s", what)
	}
}

// SkipWire skips a test of package wire in a synctest bubble: a client that a server answers with nothing begins a
// TLS handshake, to find out what it speaks. Go's random generator takes its first entropy from the clock's
// jitter in that mode, and panics in a bubble, whose clock stands still.
func SkipWire(t testing.TB) {
	t.Helper()
	Skip(t, "TLS in a bubble")
}
