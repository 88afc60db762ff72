package tracing_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Names of locks may contain private data, such as mail addresses. With WithName, spans
// do not show them in any form: attributes, texts of errors, or events.
func TestNamesOnSpansAreRawMappedOrOff(t *testing.T) {
	const secret = "user/jane@example.org"
	for _, c := range []struct {
		name, want string
		opts       []tracing.Option
	}{
		{"raw", secret, nil},
		{"hashed", tracing.HashName(secret), []tracing.Option{tracing.WithName(tracing.HashName)}},
		{"mapped", "user", []tracing.Option{tracing.WithName(func(name string) string { return strings.SplitN(name, "/", 2)[0] })}},
		{"off", "", []tracing.Option{tracing.WithName(tracing.OmitName)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			world(t, func(t *testing.T, e *memdriver.Ensemble) {
				p := start(t, e, append(c.opts, tracing.WithHoldSpan())...)
				ctx, request := p.request("pay")
				lock := must(t, ctx, p.Mutex(secret))
				done := later(func() {
					if _, err := p.Mutex(secret).Acquire(ctx); !errors.Is(err, zklock.ErrClosed) {
						t.Errorf("Acquire: %v, want a closed client", err)
					}
				})
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
				done()
				if err := lock.Release(ctx); !errors.Is(err, zklock.ErrLost) {
					t.Errorf("Release: %v, want a loss", err)
				}
				request.End()
				for _, name := range []string{tracing.SpanAcquire, tracing.SpanWait, tracing.SpanHold, tracing.SpanRelease} {
					s := p.ended(name)
					if len(s) == 0 {
						t.Fatalf("no span %s", name)
					}
					if got := attributes(s[0].Attributes())[tracing.AttrName]; got != c.want {
						t.Errorf("%s shows the name %q, want %q", name, got, c.want)
					}
				}
				if got := attributes(p.one("pay").Events()[0].Attributes)[tracing.AttrName]; got != c.want {
					t.Errorf("the event of the loss shows the name %q, want %q", got, c.want)
				}
				told := 0
				for _, s := range p.spans.Ended() {
					told += strings.Count(fmt.Sprint(s.Attributes(), s.Events(), s.Status(), s.Links()), "jane")
				}
				if (told > 0) != (c.opts == nil) {
					t.Errorf("spans show the unmapped name %d times", told)
				}
				for key := range p.values() {
					if strings.Contains(key, "name=") || strings.Contains(key, "jane") {
						t.Errorf("a metric shows the name: %s", key)
					}
				}
			})
		})
	}
}

func TestNamesOnMetricsAreMapped(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := start(t, e, tracing.WithNameAttribute(func(name string) string {
			group, _, found := strings.Cut(name, "/")
			if !found {
				return ""
			}
			return group
		}))
		for _, name := range []string{"orders/1", "orders/2", "users/1", "m"} {
			release(t, must(t, t.Context(), p.Mutex(name)))
		}
		p.measured(map[string]float64{
			"zklock.acquire.duration{mode=exclusive,name=orders,outcome=acquired}":     2,
			"zklock.acquire.duration{mode=exclusive,name=users,outcome=acquired}":      1,
			"zklock.acquire.duration{mode=exclusive,outcome=acquired}":                 1,
			"zklock.hold.duration{mode=exclusive,name=orders,release.reason=released}": 2,
			"zklock.hold.duration{mode=exclusive,name=users,release.reason=released}":  1,
			"zklock.hold.duration{mode=exclusive,release.reason=released}":             1,
		})
	})
}
