package cli

import (
	"regexp"
	"strings"
)

// inWords returns an error's text as operators need it. Errors of package zklock are for
// programmers: they name options and packages that an operator does not have.
func inWords(err error) string {
	text := strings.TrimPrefix(err.Error(), "zklock: ")
	text = unknownKey.ReplaceAllStringFunc(text, func(found string) string {
		parts := unknownKey.FindStringSubmatch(found)
		if near := nearest(parts[1], strings.Split(parts[2], ", ")); near != "" {
			return `the URL has an unknown key "` + parts[1] + `": did you mean ` + near + "?"
		}
		return found
	})
	text = importHint.ReplaceAllString(text, "")
	return operatorWords.Replace(text)
}

var (
	unknownKey    = regexp.MustCompile(`unknown key "([^"]+)" \(known: ([^)]*)\)`)
	importHint    = regexp.MustCompile(`: import a driver package, .*$`)
	operatorWords = strings.NewReplacer(
		"the time given to WithWait has passed", "the time of --wait has passed",
		"context deadline exceeded; ", "",
		"context deadline exceeded", "no answer in time",
		"registered: ", "known: ",
		"parse: ", "",
	)
)

// nearest returns the known word that another one is probably a mistake for; "" if none is near.
func nearest(word string, known []string) (near string) {
	best := len(word)/3 + 1
	for _, k := range known {
		if d := distance(word, k); d < best || d == best && near == "" {
			best, near = d, k
		}
	}
	return near
}

// distance returns how many letters have to be inserted, deleted or replaced to make one word of
// another.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := last
			if a[i] != b[j] {
				change++
			}
			last, row[j+1] = row[j+1], min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
