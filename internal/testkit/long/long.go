// Package long marks tests that take long: those that repeat much, use thousands of clients or
// names, or wait for slow faults. make test leaves them out, or runs them with smaller counts.
// With ZKLOCK_LONG=1, as in make test-all, they run whole.
package long

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Env is the environment variable that turns long tests on.
const Env = "ZKLOCK_LONG"

// On reports whether long tests run whole.
func On() bool { return os.Getenv(Env) == "1" }

// Test skips a test if long tests do not run. why says what takes the time.
func Test(t testing.TB, why string) {
	t.Helper()
	if !On() {
		t.Skipf("long: %s (%s=1 runs this test)", why, Env)
	}
}

// Parallel is t.Parallel for a test that takes all processors when it runs whole. Then it runs alone.
func Parallel(t *testing.T) {
	t.Helper()
	if !On() {
		t.Parallel()
	}
}

// Count returns how often a test repeats something: few times, or many times if long tests run.
// The environment variable of that key overrides both.
func Count(t testing.TB, key string, few, many int) int {
	t.Helper()
	switch text := os.Getenv(key); {
	case text != "":
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s=%s: want a number of at least 1", key, text)
		}
		return n
	case On():
		return many
	}
	return few
}

// Time returns how long a test goes on with something, as Count does for a number.
func Time(t testing.TB, key string, short, long time.Duration) time.Duration {
	t.Helper()
	switch text := os.Getenv(key); {
	case text != "":
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%s=%s: %v", key, text, err)
		}
		return d
	case On():
		return long
	}
	return short
}
