// Package naming is what the adapters have in common when they make a lock's
// name of what a request or a call brings along.
package naming

import (
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/zklock"
)

// Format puts a value where the text that it was parsed from has its %s.
type Format struct{ prefix, suffix string }

// MustParse reads a format with one %s in it, and %% for percent signs. It panics
// with anything else, and with a format of which no value makes a name that a
// lock can have: a format is written down in a program, and wrong from the first
// request on. owner is the function that was given the format.
func MustParse(owner, format string) Format {
	f, err := parse(format)
	if err == nil {
		err = zklock.CheckName(f.With("x"))
	}
	if err != nil {
		panic(fmt.Sprintf("%s: format %q of a lock name: %v", owner, format, err))
	}
	return f
}

// MustHaveClient panics if c is nil. owner is the function that was given it.
func MustHaveClient(owner string, c *zklock.Client) {
	if c == nil {
		panic(owner + ": the Client is nil: want one that Open has made")
	}
}

func parse(format string) (Format, error) {
	var f Format
	var b strings.Builder
	places := 0
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch {
		case i < len(format) && format[i] == '%':
			b.WriteByte('%')
		case i < len(format) && format[i] == 's' && places == 0:
			places++
			f.prefix = b.String()
			b.Reset()
		default:
			return f, fmt.Errorf("want one %%s, and %%%% for a percent sign")
		}
	}
	if places == 0 {
		return f, fmt.Errorf("it has no %%s, so that all would have one lock; pick a fixed one if that is meant")
	}
	f.suffix = b.String()
	return f, nil
}

// With returns the name that value makes.
func (f Format) With(value string) string { return f.prefix + value + f.suffix }
