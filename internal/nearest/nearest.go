// Package nearest finds the word that a mistyped one was meant to be: "did you mean".
package nearest

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Unknown returns the error for a key that is not one of the known ones:
//
//	unknown key "kep": did you mean "keep"? (known: acl, keep)
func Unknown(key string, known []string) error {
	return fmt.Errorf("unknown key %s%s (known: %s)", Shown(key), Hint(key, known), cmp.Or(strings.Join(known, ", "), "none"))
}

// Shown returns how a key, or another word that the user gave, appears in an error: quoted if it looks
// like a key. If it does not, the error does not show it, because a misplaced character in a URL may
// have made a password a key.
func Shown(word string) string {
	if !wordForm.MatchString(word) {
		return "(not shown: it is empty, or has characters that no key has)"
	}
	return strconv.Quote(word)
}

var wordForm = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// Hint returns what an error adds for a word that is not known: `: did you mean "keep"?`, or "" if no
// known word is near. It does not show the word itself, which may be a secret in the wrong place.
func Hint(word string, known []string) string {
	if near := To(word, known); near != "" {
		return `: did you mean "` + near + `"?`
	}
	return ""
}

// To returns the known word that another one is probably a mistake for; "" if none is near. Of words
// that are equally near, it returns one whose length is nearest, and of these the first. Capital
// letters count as small ones.
func To(word string, known []string) (near string) {
	word = strings.ToLower(word)
	best, off := len(word)/3+1, len(word) // a third of the letters may be wrong, and one more
	for _, k := range known {
		d, o := distance(word, strings.ToLower(k)), max(len(word)-len(k), len(k)-len(word))
		if d < max(len(word), len(k)) && (d < best || d == best && (near == "" || o < off)) {
			best, off, near = d, o, k
		}
	}
	return near
}

// distance returns how many bytes have to be inserted, deleted, replaced or swapped with the next
// to make one word of another: the distance of optimal string alignment.
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	next := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
