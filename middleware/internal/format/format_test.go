package format_test

import (
	"testing"

	"github.com/zklock/go-zklock/middleware/internal/format"
)

func TestValueReplacesTheOnePlace(t *testing.T) {
	for _, c := range []struct{ format, value, want string }{
		{"%s", "42", "42"},
		{"orders/%s", "42", "orders/42"},
		{"orders/%s/lines", "42", "orders/42/lines"},
		{"%s", "%s%d%%", "%s%d%%"},
		{"50%%/%s", "a", "50%/a"},
		{"%s/100%%", "a", "a/100%"},
		{"%%s/%s", "a", "%s/a"},
	} {
		if got := format.Parse(c.format).With(c.value); got != c.want {
			t.Errorf("Parse(%q).With(%q) = %q, want %q", c.format, c.value, got, c.want)
		}
	}
}

func TestBadFormatsPanic(t *testing.T) {
	for _, f := range []string{"", "orders", "%s/%s", "%d", "%", "%s%", "orders/%v", "%%s"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Parse(%q) took it", f)
				}
			}()
			format.Parse(f)
		}()
	}
}
