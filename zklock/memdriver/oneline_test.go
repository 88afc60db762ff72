package memdriver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Errors are one line, also where an error has two reasons, and for a path with a line break.
func TestErrorsAreOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Second))
		s := connect(t, e.Connector(), 10*time.Second)
		ended, end := context.WithCancel(t.Context())
		end()
		brief := func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			t.Cleanup(cancel)
			return ctx
		}
		get := func(ctx context.Context, path string) error { _, err := s.Get(ctx, path); return err }
		for what, c := range map[string]struct {
			err error
			is  []error
		}{
			"a context that has ended":      {get(ended, "/a"), []error{context.Canceled, driver.ErrNotSent}},
			"a context that ends too early": {get(brief(), "/a"), []error{context.DeadlineExceeded, driver.ErrConnLoss}},
			"a path with a line break":      {get(t.Context(), "/a\nb"), []error{driver.ErrBadArguments}},
			"a node that does not exist":    {get(t.Context(), "/a"), []error{driver.ErrNoNode}},
			"a close that is cut short":     {s.Close(brief()), []error{context.DeadlineExceeded, driver.ErrConnLoss}},
		} {
			for _, is := range c.is {
				if !errors.Is(c.err, is) {
					t.Errorf("%s: %v, want %v", what, c.err, is)
				}
			}
			if c.err != nil && strings.ContainsAny(c.err.Error(), "\r\n") {
				t.Errorf("%s: the error has several lines: %q", what, c.err)
			}
		}
	})
}
