package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Where a test has settings of its own.
var (
	otherSettings = regexp.MustCompile(`session_timeout|tick_time|SessionTimeout:|TickTime|corekit\.Short\(`)
	theirServers  = regexp.MustCompile(`ensemble\.Shipped\(`)
	inMemory      = regexp.MustCompile(`memdriver\.New\(`)
)

// Each claim names a heading that exists, and what holds it: suites whose census has the default settings, and tests that have no others.
func TestClaimsAreHeldAsShipped(t *testing.T) {
	texts := make(map[string]bool)
	documents := make(map[string]int) // how many claims each has
	for _, c := range claims() {
		document, heading, _ := strings.Cut(c.where, "#")
		if documents[document]++; c.text == "" || texts[c.text] || !headings(t, document)[heading] {
			t.Errorf("%q of %s: an empty or second claim, or no such heading", c.text, c.where)
		}
		texts[c.text] = true
		for _, h := range c.holders {
			if isTest(h) {
				testAsShipped(t, h)
				continue
			}
			i := slices.IndexFunc(suites, func(s suite) bool { return s.name == h })
			if i < 0 {
				t.Errorf("%q: %q is neither a suite nor a test", c.text, h)
				continue
			}
			suiteAsShipped(t, suites[i])
		}
	}
	if documents["../README.md"] < 5 || documents["guarantees.md"] < 25 {
		t.Errorf("claims: %v, want at least 5 of README and 25 of the guarantees", documents)
	}
	for heading := range headings(t, "guarantees.md") {
		if !strings.Contains(promises, "guarantees.md#"+heading+" ") && !slices.Contains(claimless, heading) {
			t.Errorf("no claim of guarantees.md#%s", heading)
		}
	}
}

// claimless are the headings of docs/guarantees.md that promise nothing, or only what claims of others hold.
var claimless = []string{"guarantees-and-rules", "assumptions", "deadlocks", "what-an-operator-sees", "how-to-avoid-them"}

// headings returns the anchors of a document.
func headings(t *testing.T, document string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", document))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]bool)
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllSubmatch(text, -1) {
		anchor := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(string(h[1])), "")
		all[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return all
}

// suiteAsShipped fails the test if a suite does not run with the default settings.
func suiteAsShipped(t *testing.T, s suite) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", filepath.Base(s.file(".txt"))))
	if err != nil {
		t.Error(err)
		return
	}
	cells := settings.FindStringSubmatch(string(text))
	if cells == nil || !strings.HasPrefix(cells[1], "2s | 30s | ") {
		t.Errorf("the settings of %s are %q, want ticks of 2s and sessions of 30s", s.name, cells)
	}
}

// testAsShipped fails the test if another one does not exist, or does not run with the default settings.
func testAsShipped(t *testing.T, name string) {
	t.Helper()
	pkg, name := "zklock", name
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		pkg, name = name[:i], name[i+1:]
	}
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		body := regexp.MustCompile(`(?ms)^func ` + name + `\(t \*testing\.T\) \{.*?^\}`).Find(text)
		switch {
		case body == nil:
			continue
		case slices.Contains(core, "./"+pkg):
			if otherSettings.Match(body) {
				t.Errorf("%s.%s has settings of its own", pkg, name)
			}
		case !theirServers.Match(text) && (!inMemory.Match(text) || otherSettings.Match(text)):
			t.Errorf("%s.%s has settings of its own", pkg, name)
		}
		return
	}
	t.Errorf("package %s has no test %s", pkg, name)
}
