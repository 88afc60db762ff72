//go:build unix

package cli

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/go-zklock/cmd/zklock/internal/run"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestLostSaysHowTheCommandEnded: a command that has ended after its TERM, while the lock was still held, has ended in
// time, and the message says so. Of a lock that is lost, it says why.
func TestLostSaysHowTheCommandEnded(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	lock := hold(t, client(t, e).Mutex("x"))
	for status, says := range map[syscall.WaitStatus]string{
		3 << 8:                              "has ended with 3 while the lock was still held",
		syscall.WaitStatus(syscall.SIGTERM): "has ended with 143 while the lock was still held",
	} {
		err := lost(lock, run.Result{Status: status, Lost: true})
		if !errors.Is(err, zklock.ErrLost) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, want %q", status, err, says)
		}
	}
	e.ExpireAll()
	<-lock.Done()
	if err := lost(lock, run.Result{Lost: true}); err == nil || strings.Contains(err.Error(), "still held") {
		t.Errorf("a lock that is lost: %v", err)
	}
}
