package fault_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
)

// TestClock: a program of the C library sees the clock, and after Set(0) the machine's again.
func TestClock(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("it needs a C compiler")
	}
	c, err := fault.NewClock(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ahead := func() time.Duration {
		cmd := exec.Command("date", "+%s")
		cmd.Env = append(os.Environ(), c.Env()...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		seconds, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return time.Until(time.Unix(seconds, 0)).Round(time.Hour)
	}
	for _, want := range []time.Duration{0, 3 * time.Hour, 0} {
		if err := c.Set(want); err != nil {
			t.Fatal(err)
		}
		if got := ahead(); got != want {
			t.Errorf("a program's clock is %v ahead, want %v", got, want)
		}
	}
}
