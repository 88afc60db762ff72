// Package naming is shared by the adapters. It makes the name of a lock from a value
// that a request or a call carries.
package naming

import (
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/zklock"
)

// Format makes a name from a value: it replaces the %s of its text by the value.
type Format struct{ prefix, suffix string }

// MustParse parses a format that has one %s in it, and %% for each percent sign. It panics if the
// format has another form, or if no value makes a valid lock name of it. A program's formats are
// constants, so a wrong one is wrong from the first request on. owner is the exported function that
// got the format; the panic names it.
func MustParse(owner, format string) Format {
	f, err := parse(format)
	if err == nil {
		err = zklock.CheckName(f.With("x"))
	}
	if err != nil {
		panic(fmt.Sprintf("%s: format %q for lock names: %v", owner, format, err))
	}
	return f
}

// MustHaveClient panics if c is nil. owner is the exported function that got c; the panic names
// it.
func MustHaveClient(owner string, c *zklock.Client) {
	if c == nil {
		panic(owner + ": the Client is nil: pass one that zklock.Open returned")
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
			return f, fmt.Errorf("it must contain exactly one %%s, and %%%% for each percent sign")
		}
	}
	if places == 0 {
		return f, fmt.Errorf("it contains no %%s, so all requests would share one lock; use a fixed lock if that is intended")
	}
	f.suffix = b.String()
	return f, nil
}

// With returns the name made from value.
func (f Format) With(value string) string { return f.prefix + value + f.suffix }
