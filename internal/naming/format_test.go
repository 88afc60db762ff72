package naming_test

import (
	"errors"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/naming"
	"github.com/zklock/go-zklock/zklock"
)

func TestValueReplacesTheOnePlace(t *testing.T) {
	for _, c := range []struct{ format, value, want, joined string }{
		{"%s", "42", "42", "42"},
		{"orders/%s", "42", "orders/42", "orders/42"},
		{"orders/%s/lines", "42", "orders/42/lines", "orders/42/lines"},
		{"orders/%s/lines", "4/2", "orders/4/2/lines", "orders/4%2F2/lines"},
		{"%s", "%s%d%%", "%s%d%%", "%25s%25d%25%25"},
		{"50%%/%s", "a", "50%/a", "50%/a"},
		{"%s/100%%", "a", "a/100%", "a/100%"},
		{"%%s/%s", "a", "%s/a", "%s/a"},
	} {
		f := naming.MustParse("f", c.format, 1)
		if got := f.With(c.value); got != c.want {
			t.Errorf("MustParse(%q).With(%q) = %q, want %q", c.format, c.value, got, c.want)
		}
		if got := f.Join([]string{c.value}); got != c.joined {
			t.Errorf("MustParse(%q).Join(%q) = %q, want %q", c.format, c.value, got, c.joined)
		}
	}
}

func TestBadFormatsPanic(t *testing.T) {
	bad := map[int][]string{
		0: {"", "orders", "%s"},
		1: {"", "orders", "%s/%s", "%d", "%", "%s%", "orders/%v", "%%s",
			// No value makes a valid name with these.
			"/%s", "%s/", "orders//%s", "../%s", "%s/./x", "a\x00%s", "a\xff%s", strings.Repeat("x", 512) + "%s"},
		2: {"", "orders", "%s", "%s/%s/%s", "%s/%d", "%s/%", "%s/%%s", "/%s/%s", "%s//%s", "%s/../%s", "%s/%s/", strings.Repeat("x", 510) + "%s/%s",
			// Nothing shows where the first value ends.
			"%s%s", "%sx%s", "%sX%s", "%s0/%s", "%s%%%s", "%s%%/%s", "%sé%s", "%s\xff%s", "%s\x00%s"},
		3: {"%s/%s%s", "%s%s/%s", "%s/%s"},
	}
	for values, formats := range bad {
		for _, f := range formats {
			func() {
				defer func() {
					if v, _ := recover().(string); !strings.HasPrefix(v, "owner: ") {
						t.Errorf("MustParse(%q, %d): recovered %q", f, values, v)
					}
				}()
				naming.MustParse("owner", f, values)
			}()
		}
	}
}

// formats are formats for several values, with how many.
var formats = map[string]int{
	"%s": 1, "orders/%s": 1, "events/%s/seats/%s": 2, "%s/%s": 2, "%s-%s": 2, "%s:%s": 2, "%s.%s": 2, "%s..%s": 2, "%s %s": 2, "a%%b/%s_%%_%s": 2,
	"%s/%s/%s": 3, "%s-%s/%s": 3, "x/%s~%s/%s-%s/y": 4, "%s--%s": 2, "%s-2F%s": 2, "%s/a%s": 2,
}

// hostile are values with which one name could be made to look like another.
var hostile = []string{"", "a", "b", "/", "//", "a/b", "../a", "..", ".", "-", "a-b", "--", "%", "%%", "%2F", "%2f", "%252F", "%25", "2F", "F", "%s", "/seats/", "a/seats/b",
	":", "_", "~", " ", "é", "\xff", "\xc3", "\xa9", "\x00", "\n", "%00", strings.Repeat("x", 600), "a/../../b", "_%_", "?", "#"}

// values returns the values of a name that Join made: it is what a reader of the name would do.
func values(t *testing.T, format, name string) (values []string) {
	t.Helper()
	texts := strings.Split(strings.ReplaceAll(format, "%%", "\x01"), "%s")
	for i := range texts {
		texts[i] = strings.ReplaceAll(texts[i], "\x01", "%")
	}
	rest, ok := strings.CutPrefix(name, texts[0])
	for _, text := range texts[1 : len(texts)-1] {
		var value string
		var found bool
		value, rest, found = strings.Cut(rest, text)
		values, ok = append(values, value), ok && found
	}
	last, found := strings.CutSuffix(rest, texts[len(texts)-1])
	if values = append(values, last); !ok || !found {
		t.Fatalf("the name %q does not have the format %q", name, format)
	}
	for i, v := range values {
		unescaped, err := url.PathUnescape(v)
		if err != nil {
			t.Fatalf("the value %q of %q is not escaped: %v", v, name, err)
		}
		values[i] = unescaped
	}
	return values
}

// checkJoin checks that a name gives back its values, so that no other values have it.
func checkJoin(t *testing.T, format string, of []string) {
	t.Helper()
	name := naming.MustParse("f", format, len(of)).Join(of)
	if got := values(t, format, name); !slices.Equal(got, of) {
		t.Fatalf("format %q: the values %q have the name %q, which is that of %q", format, of, name, got)
	}
	if err := zklock.CheckName(name); err != nil && !errors.Is(err, zklock.ErrInvalidName) {
		t.Fatalf("%q: %v, want nil or ErrInvalidName", name, err)
	}
}

// Two different lists of values never have one name, whatever the values are.
func TestNoValuesNameTheLockOfOthers(t *testing.T) {
	for format, n := range formats {
		r := rand.New(rand.NewPCG(uint64(n), uint64(len(format))))
		f := naming.MustParse("f", format, n)
		names := make(map[string][]string)
		add := func(of []string) {
			checkJoin(t, format, of)
			name := f.Join(of)
			if other, ok := names[name]; ok && !slices.Equal(other, of) {
				t.Fatalf("format %q: the values %q and %q have one name, %q", format, of, other, name)
			}
			names[name] = of
		}
		if n <= 2 { // all pairs
			for _, a := range hostile {
				for _, b := range hostile {
					add([]string{a, b}[:n])
				}
			}
		}
		for range 4_000 { // short texts of the characters that matter, so that they meet
			of := make([]string, n)
			for i := range of {
				for range r.IntN(4) {
					of[i] += string("/%-:.2Fa_~ "[r.IntN(11)])
				}
			}
			add(of)
		}
	}
}

func FuzzJoin(f *testing.F) {
	for i, h := range hostile {
		f.Add(h, hostile[(i+7)%len(hostile)], "/", "b", "x")
	}
	f.Add("a", "b", "-2F", "", "")
	f.Fuzz(func(t *testing.T, a, b, between, prefix, suffix string) {
		format, err := naming.New([]string{prefix, between, suffix})
		if err != nil {
			return // a format that no program can have
		}
		name := format.Join([]string{a, b})
		quote := func(text string) string { return strings.ReplaceAll(text, "%", "%%") }
		if got := values(t, quote(prefix)+"%s"+quote(between)+"%s"+quote(suffix), name); got[0] != a || got[1] != b {
			t.Fatalf("%q, %q: the name %q is that of %q", a, b, name, got)
		}
	})
}
