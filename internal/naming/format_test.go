package naming_test

import (
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/naming"
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
		if got := naming.MustParse("f", c.format).With(c.value); got != c.want {
			t.Errorf("MustParse(%q).With(%q) = %q, want %q", c.format, c.value, got, c.want)
		}
	}
}

func TestBadFormatsPanic(t *testing.T) {
	for _, f := range []string{
		"", "orders", "%s/%s", "%d", "%", "%s%", "orders/%v", "%%s",
		// No value makes a valid name with these.
		"/%s", "%s/", "orders//%s", "../%s", "%s/./x", "a\x00%s", "a\xff%s", strings.Repeat("x", 512) + "%s",
	} {
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.HasPrefix(v, "owner: ") {
					t.Errorf("MustParse(%q): recovered %q", f, v)
				}
			}()
			naming.MustParse("owner", f)
		}()
	}
}
