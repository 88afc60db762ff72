package interceptors

import (
	"fmt"
	"strings"
)

// nameFormat puts a value where the format it was parsed from has its %s.
type nameFormat struct{ prefix, suffix string }

// parseFormat reads a format with one %s in it, and %% for percent signs. It
// panics with anything else: a format is written down in a program, and wrong
// from the first call on.
func parseFormat(format string) nameFormat {
	const sign = "\x00" // stands for %%; no name may contain it
	prefix, suffix, found := strings.Cut(strings.ReplaceAll(format, "%%", sign), "%s")
	if !found || strings.ContainsRune(prefix+suffix, '%') || strings.Contains(format, sign) {
		panic(fmt.Sprintf("interceptors: format %q of a lock name: want one %%s, and %%%% for a percent sign", format))
	}
	return nameFormat{strings.ReplaceAll(prefix, sign, "%"), strings.ReplaceAll(suffix, sign, "%")}
}

// with returns the name that a value makes.
func (f nameFormat) with(value string) string { return f.prefix + value + f.suffix }
