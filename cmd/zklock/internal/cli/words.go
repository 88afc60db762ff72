package cli

import (
	"regexp"
	"strings"
)

// inWords returns an error's text as operators need it. Errors of package zklock are for
// programmers: they name options and packages that an operator does not have.
func inWords(err error) string {
	text := strings.TrimPrefix(err.Error(), "zklock: ")
	text = importHint.ReplaceAllString(text, "")
	return operatorWords.Replace(text)
}

var (
	importHint    = regexp.MustCompile(`: import a driver package, .*$`)
	operatorWords = strings.NewReplacer(
		"the time given to WithWait has passed", "the time of --wait has passed",
		"context deadline exceeded; ", "",
		"context deadline exceeded", "no answer in time",
		"registered: ", "known: ",
		"parse: ", "",
	)
)
