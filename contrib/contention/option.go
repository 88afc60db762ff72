package contention

import "strings"

// Option is a setting of a [Profile].
type Option interface{ apply(*Profile) }

type option func(*Profile)

func (o option) apply(p *Profile) { o(p) }

// WithClass sets a function that maps a lock's name to its class, which is what the profiles
// show. Many goroutines may call class at once.
//
// By default, and if class is nil, the class is the part of the name before the first slash, and "/*". Of a name without
// a slash, it is the part before the first digit, and "*" if there is a digit. The name of a
// zklock.All is the names joined by commas; their classes are joined, too, and names without a slash
// are "*", because a comma may also be part of a name.
func WithClass(class func(name string) string) Option {
	return option(func(p *Profile) { p.class = class })
}

// WithHolderLabels makes the profile of waits show the label of the contender ahead, after its
// host: the text of zklock.WithLabel, and with the adapters the route or the method, as in "held
// by web POST /orders/{id}/pay". By default labels are left out, since a program may write ids of
// users or requests into them.
func WithHolderLabels() Option { return option(func(p *Profile) { p.labels = true }) }

// WithCallerLabels labels the acquisitions that have no label with the line of code that acquires:
// pay.go:120. Other processes read it like any label: in errors of waits, on the operators' page,
// and in profiles with [WithHolderLabels]. An acquisition costs a few microseconds more.
func WithCallerLabels() Option { return option(func(p *Profile) { p.callers = true }) }

// WithCandidacies makes the profiles show the acquisitions with zklock.WithCandidacy, too, such as those
// of elections. By default they are left out: a candidate waits and a leader holds for as long as nothing
// is wrong, and the hours of one hide the milliseconds of all others.
func WithCandidacies() Option { return option(func(p *Profile) { p.candidacies = true }) }

// classOf is the default class of a lock.
func classOf(name string) string {
	if !strings.Contains(name, ",") {
		return classOfOne(name)
	}
	var b strings.Builder
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(name, ",") {
		class := "*"
		if strings.Contains(part, "/") {
			class = classOfOne(part)
		}
		if seen[class] {
			continue
		}
		if len(seen) > 0 {
			b.WriteByte(',')
		}
		seen[class] = true
		b.WriteString(class)
	}
	return b.String()
}

func classOfOne(name string) string {
	if before, _, found := strings.Cut(name, "/"); found {
		return before + "/*"
	}
	if i := strings.IndexAny(name, digits); i >= 0 {
		return name[:i] + "*"
	}
	return name
}

const digits = "0123456789"
