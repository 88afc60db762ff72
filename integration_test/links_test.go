package integration_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// measuredFiles are written by make bench-peers and make bench-growth, which take long.
// Documents may link to them before they exist.
var measuredFiles = map[string]bool{
	"../integration_test/bench/results.md":               true,
	"../integration_test/bench/results-three-servers.md": true,
	"../integration_test/bench/results-failover.md":      true,
	"../integration_test/bench/results-overload.md":      true,
	"../integration_test/bench/growth.svg":               true,
}

// documents lists the project's Markdown files, without the forms of GitHub.
func documents(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git" || d.Name() == ".github" || path == "../bin"): // make unpacks other programs into bin
			return fs.SkipDir
		case filepath.Ext(path) == ".md":
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 9 {
		t.Fatalf("only %d documents found: %v", len(paths), paths)
	}
	return paths
}

// guide returns the text that users read: the README, and then the files in docs.
func guide(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, path := range guides(t) {
		if tutorials[path] != "" { // TestTutorial runs what it has
			continue
		}
		part, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(part)
		text.WriteString("\n")
	}
	return text.String()
}

// guides returns the paths of the files that users read.
func guides(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob("../docs/*.md")
	if err != nil || len(docs) < 5 {
		t.Fatalf("%d documents in docs: %v", len(docs), err)
	}
	return append([]string{"../README.md"}, docs...)
}

// links returns the targets of a document's links, and the anchors of its headings.
func links(t *testing.T, path string) (to []string, anchors map[string]bool) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	anchors = make(map[string]bool)
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllSubmatch(text, -1) {
		a := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(string(h[1])), "")
		anchors["#"+strings.ReplaceAll(a, " ", "-")] = true
	}
	for _, l := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllSubmatch(text, -1) {
		to = append(to, string(l[1]))
	}
	return to, anchors
}

// Every file and heading that a document links to exists.
func TestDocumentedLinksLead(t *testing.T) {
	for _, path := range documents(t) {
		to, anchors := links(t, path)
		for _, link := range to {
			switch {
			case strings.HasPrefix(link, "https://"): // not checked: tests do not use other machines
			case strings.HasPrefix(link, "#"):
				if !anchors[link] {
					t.Errorf("%s: the link %s leads to a heading that does not exist", path, link)
				}
			default:
				file, heading, _ := strings.Cut(link, "#")
				target := filepath.Join(filepath.Dir(path), file)
				if _, err := os.Stat(target); err != nil {
					if !measuredFiles[target] {
						t.Errorf("%s: %v", path, err)
					}
					continue
				}
				if heading == "" {
					continue
				}
				if _, there := links(t, target); !there["#"+heading] {
					t.Errorf("%s: the link %s leads to a heading that does not exist", path, link)
				}
			}
		}
	}
}

// A document that lists its contents lists every section, in their order.
func TestDocumentedContentsAreComplete(t *testing.T) {
	for _, path := range documents(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		contents := regexp.MustCompile(`(?s)\*\*Contents\.\*\*(.*?)\n\n`).FindSubmatch(text)
		if contents == nil {
			continue
		}
		var listed, sections []string
		for _, m := range regexp.MustCompile(`\[([^\]]*)\]\(#`).FindAllSubmatch(contents[1], -1) {
			listed = append(listed, string(m[1]))
		}
		for _, m := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllSubmatch(text, -1) {
			sections = append(sections, string(m[1]))
		}
		if !slices.Equal(listed, sections) {
			t.Errorf("%s lists the contents %q, and has the sections %q", path, listed, sections)
		}
	}
}

// Users begin with the README: it links to every other document, or to the table of packages, which does.
func TestDocumentedIsWhereTheReadmeLeads(t *testing.T) {
	to, _ := links(t, "../README.md")
	if len(to) < 20 {
		t.Fatalf("only %d links found in the README", len(to))
	}
	reached := make(map[string]bool)
	for _, link := range to {
		reached[filepath.Join("..", link)] = true
	}
	packages, _ := links(t, "../docs/adapters.md")
	for _, link := range packages {
		reached[filepath.Join("../docs", link)] = true
	}
	for _, path := range documents(t) {
		if path != "../README.md" && !measuredFiles[path] && !reached[path] {
			t.Errorf("the README does not link to %s", path)
		}
	}
}
