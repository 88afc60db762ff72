package contention

import (
	"strings"
	"unicode"

	"github.com/zklock/go-zklock/zklock"
)

// holderOf returns the text of the frame for the contender ahead. If that one waits too, it is not
// known which contender holds the lock: a client reads only the queue node in front of its own.
func (p *Profile) holderOf(e *zklock.WaitEvent) string {
	c, text := &e.Ahead, "behind "
	if c.Held || e.Position == 1 && c.Node != "" { // without a node, it is a goroutine of this process that waits itself
		text = "held by "
	}
	switch host := hostClass(c.Host); {
	case c.Foreign:
		text += "another library"
	case host == "":
		text += "another client"
	default:
		text += host
	}
	if p.labels && c.Label != "" {
		text += " " + c.Label
	}
	return clean(text)
}

// hostClass returns what the hosts of a service's replicas have in common: web of web-3, of
// web-7d9f8b6c4-x2k9p and of web12.example.com.
func hostClass(host string) string {
	host, _, _ = strings.Cut(host, ".")
	if i := strings.IndexAny(host, digits); i >= 0 {
		host = host[:i]
		if j := strings.LastIndexByte(host, '-'); j >= 0 {
			host = host[:j] // the letters after it are the beginning of a random suffix
		}
	}
	return strings.TrimRight(host, "-")
}

// maxText is the most bytes of a class or a holder that a profile shows.
const maxText = 128

// clean returns a text that others may have written in a form that is safe to print, and short.
func clean(text string) string {
	if len(text) > maxText {
		text = text[:maxText] // the rest of a rune that is cut becomes the mark of an invalid one
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
