// Package format makes lock names of values that a request brings along.
package format

import (
	"fmt"
	"strings"
)

// Name puts a value where the format that it was parsed from has its %s.
type Name struct{ prefix, suffix string }

// Parse reads a format with one %s in it, and %% for percent signs. It panics
// with anything else: a format is written down in a program, and wrong from the
// first request on.
func Parse(format string) Name {
	var n Name
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
			n.prefix = b.String()
			b.Reset()
		default:
			panic(fmt.Sprintf("format %q of a lock name: want one %%s, and %%%% for a percent sign", format))
		}
	}
	if places == 0 {
		panic(fmt.Sprintf("format %q of a lock name has no %%s: all requests would have one lock; pick a fixed one if that is meant", format))
	}
	n.suffix = b.String()
	return n
}

// With returns the name that value makes.
func (n Name) With(value string) string { return n.prefix + value + n.suffix }
