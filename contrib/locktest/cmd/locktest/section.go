package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// nextHead is the head of the section that follows those with results of their own.
const nextHead = "## Faults of other servers\n"

// writeSection replaces a section of a document, and leaves the rest as it is.
func writeSection(path, head, section string) error {
	if section == "" {
		return errors.New("there are no results of such runs: run some first")
	}
	old, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%w: write the document with the faults of all first", err)
	}
	before, _, after := cutSection(string(old), head)
	if after == "" {
		return fmt.Errorf("%s has not the section %q", path, strings.TrimSpace(nextHead))
	}
	return os.WriteFile(path, []byte(before+section+after), 0o666)
}

// cutSection cuts a document before a section and after it. A document without that section has an empty one at its
// place, before the others with results of their own; after is empty if the document has no such place.
func cutSection(document, head string) (before, section, after string) {
	if at := strings.Index(document, head); at >= 0 {
		end := at + len(head)
		if next := strings.Index(document[end:], "\n## "); next >= 0 {
			end += next + 1
		} else {
			end = len(document)
		}
		return document[:at], document[at:end], document[end:]
	}
	at := strings.Index(document, nextHead)
	if other := strings.Index(document, philosophersHead); other >= 0 && head == silentHead {
		at = other
	}
	if at < 0 {
		return document, "", ""
	}
	return document[:at], "", document[at:]
}
