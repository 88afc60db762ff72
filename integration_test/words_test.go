package integration_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// unclear are words that name no actor, or stand where a plainer word would: see
// TestDocumentedInPlainWords.
var unclear = regexp.MustCompile(`(?i)\b(who|whom|whoever|somebody|someone|nobody|everybody|anybody|tells?|told|sees to|seen to|comes to|be it|is no|are no|has \w+ done|anew|all the same)\b`)

// quoted is what a document says in code, in links, or in comments for the tests: the
// words in it are names, of tests for example.
var quoted = regexp.MustCompile("(?s)```.*?```|`[^`]*`|\\]\\([^)]*\\)|<!--.*?-->|<[^>]*>")

// plain removes what is quoted from a document and keeps its lines.
func plain(text string) string {
	return quoted.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
}

// TestDocumentedInPlainWords: a sentence for users names its actor, the client, the holder,
// the waiter or the server, and says "reports" or "returns".
func TestDocumentedInPlainWords(t *testing.T) {
	for _, path := range append(guides(t), "../CONTRIBUTING.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(plain(string(text)), "\n") {
			if m := unclear.FindString(line); m != "" {
				t.Errorf("%s:%d: %q: name the actor, or use a plainer word: %s", path, i+1, m, strings.TrimSpace(line))
			}
		}
	}
}

func TestDocumentedInPlainWordsSeesThem(t *testing.T) {
	for text, found := range map[string]bool{
		"Whoever waits queues again.":                       true,
		"A waiter queues again.":                            false,
		"Somebody holds it":                                 true,
		"`who` is a name, and [a link](who.md)":             false,
		"```\nwho\n```\nA client reports it.":               false,
		"The client is told.":                               true,
		"What the log sees to":                              true,
		"The wholesale price and the storyteller's example": false,
	} {
		if got := unclear.MatchString(plain(text)); got != found {
			t.Errorf("%q: found %v, want %v", text, got, found)
		}
	}
}
