package session

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// oneHold is a hold with one handle.
type oneHold struct {
	Dependent
	name     string
	reported *bool
}

func (h *oneHold) MarkLost() bool          { return true }
func (h *oneHold) Finish(error, time.Time) {}
func (h *oneHold) Vacate()                 {}
func (h *oneHold) Report()                 { *h.reported = true }
func (h *oneHold) Name() string            { return h.name }

// A Lock that a program keeps after its loss refers to the session, which may have lost ten thousand holds.
// They are let go when their loss was reported.
func TestEndedSessionLetsItsHoldsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reported := false
		s := busySession(&onConn{generation: 1}, 5*time.Second)
		h := &oneHold{name: "x", reported: &reported}
		kept := weak.Make(h)
		if !s.Hold(h, 0) {
			t.Fatal("the session takes no hold")
		}
		h = nil
		s.End(driver.Expired, errs.ErrSessionExpired)
		s.announceEnd()
		synctest.Wait()
		if runtime.GC(); !reported || kept.Value() != nil {
			t.Errorf("the loss was reported: %t; the session keeps the hold: %t", reported, kept.Value() != nil)
		}
		runtime.KeepAlive(s)
	})
}
