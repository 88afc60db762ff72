package integration_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unclear are words that name no actor, or have a plainer synonym.
var unclear = regexp.MustCompile(`(?i)\b(who|whom|whoever|somebody|someone|nobody|everybody|everyone|anybody|anyone|tells?|told|telling|sees to|seen to|comes to|be it|is no|are no|has (it|them|this|that|all|everything) done|anew|all the same|beside)\b`)

// quoted is what a text has from elsewhere: code, names, links, and comments for tests.
var quoted = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`|\\]\\([^)]*\\)|<!--.*?-->|<[^>\n]*>|https?://\\S+")

// whoCommand is the name of a command, or of its manual.
var whoCommand = regexp.MustCompile(`\bzklock[ -]who\b`)

// there begins a phrase such as "there is no server", which is plain English.
var there = regexp.MustCompile(`(?i)\bthere (is|are) no\b`)

// plain removes quotations from a text and keeps its lines.
func plain(text string) string {
	text = quoted.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
	text = whoCommand.ReplaceAllString(text, "zklock -")
	return there.ReplaceAllString(text, "there is none")
}

// names are texts that have one of the words because a program calls something so. Texts that
// begin with the command who are command lines.
var names = map[string]bool{
	`"anyone"`: true, // an identity of ZooKeeper's
	`"who"`:    true, // a command
}

// TestDocumentedInPlainWords: a sentence names its actor, the client, the holder, the
// waiter or the server, and says "reports" or "returns". The test reads documents, and in
// code the comments and the texts of errors and logs.
func TestDocumentedInPlainWords(t *testing.T) {
	checked := 0
	for _, path := range projectFiles(t) {
		if path == "integration_test/words_test.go" || strings.HasSuffix(path, ".pb.go") {
			continue
		}
		read := func() []byte {
			text, err := os.ReadFile(filepath.Join("..", path))
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		lines := map[int]string{}
		switch {
		case strings.HasSuffix(path, ".go"):
			lines = prose(read())
		case strings.HasSuffix(path, ".md"):
			for i, line := range strings.Split(plain(string(read())), "\n") {
				lines[i+1] = line
			}
		case strings.HasSuffix(path, ".proto"), strings.HasSuffix(path, ".yml"), path == "Makefile", filepath.Dir(path) == ".ci":
			for i, line := range strings.Split(string(read()), "\n") {
				lines[i+1] = plain(line)
			}
		default:
			continue
		}
		checked++
		for i, line := range lines {
			if word := unclear.FindString(line); word != "" {
				t.Errorf("%s:%d: %q: name the actor, or use a plainer word: %s", path, i, word, strings.TrimSpace(line))
			}
		}
	}
	if checked < 400 {
		t.Errorf("only %d files were read", checked)
	}
}

// projectFiles lists the files of the project, from its top.
func projectFiles(t *testing.T) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin" || entry.Name() == "fuzz") {
			return filepath.SkipDir
		}
		path, err = filepath.Rel("..", path)
		paths = append(paths, filepath.ToSlash(path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// prose returns the comments and string literals of Go code, by line.
func prose(code []byte) map[int]string {
	lines := make(map[int]string)
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(code))
	var s scanner.Scanner
	s.Init(file, code, nil, scanner.ScanComments)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok != token.COMMENT && tok != token.STRING || names[text] || strings.HasPrefix(text, `"who `) {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			lines[file.Line(pos)+i] += " " + plain(strings.Trim(line, "`"))
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
		"This is no lock.":                                  true,
		"There is no lock.":                                 false,
	} {
		if got := unclear.MatchString(plain(text)); got != found {
			t.Errorf("%q: found %v, want %v", text, got, found)
		}
	}
	code := "package p\n\n// A line.\n// Whoever waits.\nvar whoever = \"told\" // none\nvar id = \"anyone\"\n"
	lines := prose([]byte(code))
	for line, found := range map[int]bool{3: false, 4: true, 5: true, 6: false} {
		if got := unclear.MatchString(lines[line]); got != found {
			t.Errorf("line %d, %q: found %v, want %v", line, lines[line], got, found)
		}
	}
}
