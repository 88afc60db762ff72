package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A document has what is true before the first release between the first two comments, and what is
// true from then on in the second one. The word VERSION stands for the version there.
//
//	<!-- until the first release -->
//	There is no release yet.
//	<!-- from then on:
//	Type `go get example.com/module@VERSION`.
//	-->
var (
	firstRelease = regexp.MustCompile(`(?ms)^<!-- until the first release -->\n.*?^<!-- from then on:\n(.*?)^-->\n`)
	leftover     = regexp.MustCompile(`(?m)^<!-- (until the first release|from then on)`)
	gotten       = regexp.MustCompile(`(` + regexp.QuoteMeta(module) + "[^\\s@`]*)@v[0-9][^\\s`]*")
	unreleased   = regexp.MustCompile(`(?ms)^## \[Unreleased\]\n(.*?)(^## \[|\z)`)
)

// announce turns the documents below root into those of a release: what they say before the first
// release goes, commands that get a module have the version, and what CHANGELOG.md has under
// [Unreleased] becomes a section with the version and the date. It returns the paths of the documents
// that it changed. A second call with the same version changes nothing.
func announce(ctx context.Context, root, version string, date time.Time) (changed []string, err error) {
	paths, err := documents(ctx, root)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		before, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return nil, err
		}
		after := firstRelease.ReplaceAllStringFunc(string(before), func(s string) string {
			return strings.ReplaceAll(firstRelease.FindStringSubmatch(s)[1], "VERSION", version)
		})
		if at := leftover.FindString(after); at != "" {
			return nil, fmt.Errorf("%s has %q without the comment that belongs to it", path, at)
		}
		after = gotten.ReplaceAllString(after, "${1}@"+version)
		if path == "CHANGELOG.md" {
			if after, err = dated(after, version, date); err != nil {
				return nil, err
			}
		}
		if after == string(before) {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(after), 0o666); err != nil {
			return nil, err
		}
		changed = append(changed, path)
	}
	return changed, nil
}

// dated gives the unreleased entries of a changelog a section of their own, unless the version has one.
func dated(log, version string, date time.Time) (string, error) {
	section := "## [" + strings.TrimPrefix(version, "v") + "]"
	if strings.Contains(log, "\n"+section) {
		return log, nil
	}
	entries := unreleased.FindStringSubmatch(log)
	if entries == nil || strings.TrimSpace(entries[1]) == "" {
		return "", fmt.Errorf("CHANGELOG.md has no entry under [Unreleased], and no section %s", section)
	}
	return strings.Replace(log, "## [Unreleased]\n", "## [Unreleased]\n\n"+section+" - "+date.Format(time.DateOnly)+"\n", 1), nil
}

// documents lists the documents of the project at root.
func documents(ctx context.Context, root string) ([]string, error) {
	list, err := output(ctx, root, nil, "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md")
	return strings.Split(list, "\n"), err
}
