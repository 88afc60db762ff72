package main

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
)

// promises are the claims of the documents, one a line: the claim, the heading that has it, and what holds it at the default
// settings, which are suites or tests. A test without a package is in package zklock. Paths begin in docs.
//
//go:embed claims.txt
var promises string

// claim is one of them.
type claim struct {
	text    string
	where   string   // document#heading
	holders []string // names of suites, and tests
}

// claims returns all of them.
func claims() (all []claim) {
	for line := range strings.Lines(promises) {
		text, rest, _ := strings.Cut(strings.TrimSpace(line), " | ")
		where, holders, _ := strings.Cut(rest, " | ")
		all = append(all, claim{text, where, strings.Split(holders, ", ")})
	}
	return all
}

// isTest reports whether a holder is a test, and not a suite.
func isTest(holder string) bool {
	return strings.HasPrefix(holder[strings.LastIndexByte(holder, '.')+1:], "Test")
}

// kept begins the table of claims.
const kept = `
## What holds each promise

Each promise of [README](../README.md), [guarantees](guarantees.md) and [operations](operations.md) is held by these suites and tests with
the default settings, on servers, real or simulated, with ZooKeeper's own: ticks of 2s, and where they count, initLimit 10 and syncLimit 5.
Other suites hold them with more settings. The tests in memory run with the defaults as the suite "core as shipped"; without
` + "`ZKLOCK_SHIPPED`" + ` most of them have a session_timeout of 10s, and what a client does by time scales with it.

| promise | where | held by |
|---|---|---|
`

// writeClaims writes what holds each claim.
func writeClaims(w io.Writer) {
	fmt.Fprint(w, kept)
	for _, c := range claims() {
		document, _, _ := strings.Cut(c.where[strings.LastIndexByte(c.where, '/')+1:], ".md")
		var holders []string
		for _, h := range c.holders {
			if isTest(h) {
				h = "`" + h + "`"
			}
			holders = append(holders, h)
		}
		fmt.Fprintf(w, "| %s | [%s](%s) | %s |\n", c.text, document, c.where, strings.Join(holders, ", "))
	}
}
