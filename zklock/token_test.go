package zklock_test

import (
	"math/rand/v2"
	"testing"

	"github.com/zklock/go-zklock/zklock"
)

func TestTokenTextSortsLikeTokens(t *testing.T) {
	// Lengths in bits are uniform, so that small and large numbers come, and equal ones.
	token := func() zklock.Token {
		return zklock.Token{Zxid: rand.Int64() >> rand.IntN(64), Turn: rand.Uint32() >> rand.IntN(33)}
	}
	for range 10_000 {
		a, b := token(), token()
		sa, sb := a.String(), b.String()
		if got, want := cmpString(sa, sb), a.Compare(b); got != want {
			t.Fatalf("%v compared with %v: %d as text, %d as tokens", a, b, got, want)
		}
		back, err := zklock.ParseToken(sa)
		if err != nil || back != a {
			t.Fatalf("ParseToken(%q) = %v, %v", sa, back, err)
		}
	}
}

func cmpString(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestParseTokenTakesOnlyTheCanonicalForm(t *testing.T) {
	for _, s := range []string{
		"", "1.1", "000000000000000a.0000000", "000000000000000A.00000000",
		"+00000000000000a.00000000", "ffffffffffffffff.00000000", "000000000000000a-00000000",
		"000000000000000a.00000000 ", "000000000000000_a.0000000",
	} {
		if got, err := zklock.ParseToken(s); err == nil {
			t.Errorf("ParseToken(%q) = %v, want an error", s, got)
		}
	}
}
