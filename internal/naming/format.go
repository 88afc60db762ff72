// Package naming is shared by the adapters. It makes the name of a lock from values
// that a request or a call carries.
package naming

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/zklock"
)

// Format makes a name from values: it puts them into the places of a text.
type Format struct {
	texts   []string // around the places, so there is one more than there are places
	special string   // the characters that Join escapes
}

// MustParse parses a format for the given number of values. It has a %s for each of them, and %% for
// each percent sign. MustParse panics if the format has another form, or if no values make a valid
// lock name of it. A program's formats are constants, so a wrong one is wrong from the first request
// on. owner is the exported function that got the format; the panic names it.
func MustParse(owner, format string, values int) Format {
	texts, err := parse(format, values)
	var f Format
	if err == nil {
		f, err = New(texts)
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

// parse returns the texts around the places of a format.
func parse(format string, values int) (texts []string, err error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch {
		case i < len(format) && format[i] == '%':
			b.WriteByte('%')
		case i < len(format) && format[i] == 's':
			texts = append(texts, b.String())
			b.Reset()
		default:
			return nil, errors.New("it must contain a %s for each value, %% for each percent sign, and no other percent sign")
		}
	}
	switch places := len(texts); {
	case values == 0:
		return nil, errors.New("there is no value for it: pass a key for each %s")
	case places == 0:
		return nil, errors.New("it contains no %s, so all requests would share one lock; use a fixed lock if that is intended")
	case places != values:
		return nil, fmt.Errorf("it contains %d %%s, and there are %d values: it must contain one for each", places, values)
	}
	return append(texts, b.String()), nil
}

// New returns the format with the given texts around its places. It fails if no values make a valid
// lock name, or if Join could not keep two values apart.
//
// Join never gives one name for two lists of values. An escaped value has no special characters but
// the percent signs of its escapes, and digits and letters follow these. The text between two values
// begins with a special character other than a percent sign. So each value ends at the first such
// character, and the last value ends where the last text begins: the name alone shows the values.
func New(texts []string) (Format, error) {
	f := Format{texts: texts, special: "%/"}
	for i := 1; i < len(texts)-1; i++ {
		if !separates(texts[i]) {
			return f, errors.New(`between two values there must be a text that does not begin with a letter, a digit or "%": use a slash, for example`)
		}
		if c := texts[i][:1]; !strings.Contains(f.special, c) {
			f.special += c
		}
	}
	return f, zklock.CheckName(strings.Join(texts, "x"))
}

// separates reports whether a text between two values shows where the first one ends.
func separates(text string) bool {
	if text == "" {
		return false
	}
	switch c := text[0]; {
	case c >= 0x80, c == '%', '0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z':
		return false
	}
	return true
}

// With returns the name made from the one value of a format, which it inserts unchanged.
func (f Format) With(value string) string { return f.texts[0] + value + f.texts[1] }

// Join returns the name made from a value for each place. It escapes each value, as a URL does: a
// slash becomes %2F, a percent sign %25, and so does the character that separates two values in the
// format.
func (f Format) Join(values []string) string {
	if len(f.texts) == 1 {
		return f.texts[0]
	}
	n := 0
	for i, text := range f.texts {
		if n += len(text); i < len(values) {
			n += len(values[i])
		}
	}
	var b strings.Builder
	b.Grow(n)
	for i, text := range f.texts {
		b.WriteString(text)
		if i < len(values) {
			f.escape(&b, values[i])
		}
	}
	return b.String()
}

// escape writes a value. Special characters are ASCII, so it does not change what is not UTF-8, which
// makes the name invalid.
func (f Format) escape(b *strings.Builder, value string) {
	for {
		i := strings.IndexAny(value, f.special)
		if i < 0 {
			b.WriteString(value)
			return
		}
		b.WriteString(value[:i])
		fmt.Fprintf(b, "%%%02X", value[i])
		value = value[i+1:]
	}
}
