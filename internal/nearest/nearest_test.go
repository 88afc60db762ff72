package nearest

import "testing"

func TestTo(t *testing.T) {
	known := []string{"acl", "keep", "keep_max", "sasl", "session_timeout", "tls_ca", "zk", "zks"}
	for word, want := range map[string]string{
		"sesion_timeout": "session_timeout", "session-timeout": "session_timeout", "SESSION_TIMEOUT": "session_timeout", "sessionTimeout": "session_timeout",
		"cal": "acl", "kep": "keep", "peek": "keep", "keepmax": "keep_max", "slas": "sasl", "tls_ac": "tls_ca", "zkz": "zks", "zsk": "zks", "zkss": "zks",
		"": "", "something": "", "timeout": "", "x": "", "ab": "", "zookeeper": "", "redis": "", "\xff\xff\xff": "",
	} {
		if got := To(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := Hint("kep", known); got != `: did you mean "keep"?` {
		t.Errorf("%q", got)
	}
	for key, want := range map[string]string{
		"kep":         `unknown key "kep": did you mean "keep"? (known: acl, keep)`,
		"something":   `unknown key "something" (known: acl, keep)`,
		"ke ep":       `unknown key (not shown: it is empty, or has characters that no key has): did you mean "keep"? (known: acl, keep)`,
		"":            `unknown key (not shown: it is empty, or has characters that no key has) (known: acl, keep)`,
		"svc:hunter2": `unknown key (not shown: it is empty, or has characters that no key has) (known: acl, keep)`,
	} {
		if got := Unknown(key, []string{"acl", "keep"}).Error(); got != want {
			t.Errorf("%q: %s, want %s", key, got, want)
		}
	}
	if got := Hint("kep", nil); got != "" {
		t.Errorf("without known words: %q", got)
	}
}

// The distance is symmetric, 0 for equal words only, and 1 for one mistake.
func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"ab", "ab", 0}, {"ab", "ba", 1}, {"abc", "ac", 1}, {"abc", "abxc", 1}, {"abc", "axc", 1}, {"abcd", "badc", 2}, {"ca", "abc", 3}, {"kitten", "sitting", 3}} {
		if got, back := distance(c.a, c.b), distance(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("%q and %q: %d and %d, want %d", c.a, c.b, got, back, c.want)
		}
	}
}
