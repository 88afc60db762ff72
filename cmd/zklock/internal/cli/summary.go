package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
)

// summary is what a line of a list says of a queue.
type summary struct {
	holder, waiter               *zklock.Contender // the first of each, or nil; candidates, which wait on purpose, do not count as waiters
	holders, waiters, candidates int
	oldest                       time.Time // when the first of the holders has asked; unknown if there is none; leaders, which hold for long on purpose, do not count
}

func summarize(info zklock.LockInfo) summary {
	s := summary{oldest: unknown}
	for i := range info.Contenders {
		switch c := &info.Contenders[i]; {
		case c.Held:
			if s.holders++; s.holder == nil {
				s.holder = c
			}
			if since := known(c.Since); !c.Candidacy && since.Before(s.oldest) {
				s.oldest = since
			}
		case c.Candidacy:
			s.candidates++
		default:
			if s.waiters++; s.waiter == nil {
				s.waiter = c
			}
		}
	}
	return s
}

// owner returns the process that holds the lock, and how many others do; "-" for none.
func (s summary) owner() string {
	if s.holder == nil {
		return "-"
	}
	text := owner(*s.holder)
	if role := operator.RoleOf(*s.holder); role != "" {
		text += " (" + role + ")"
	}
	if s.holders > 1 {
		text += fmt.Sprintf(" and %d more", s.holders-1)
	}
	return text
}

// waiting returns how many processes wait.
func (s summary) waiting() string {
	text := strconv.Itoa(s.waiters)
	if s.candidates > 0 {
		text += " and " + operator.Count(s.candidates, "candidate")
	}
	return text
}

// waits returns since when the first waiter has waited; unknown if there is none.
func (s summary) waits() time.Time {
	if s.waiter == nil {
		return unknown
	}
	return known(s.waiter.Since)
}

// unknown is behind all times.
var unknown = time.Unix(1<<40, 0)

func known(t time.Time) time.Time {
	if t.IsZero() {
		return unknown
	}
	return t
}

// order is the flag --sort: a key of orders.
type order string

// orders compare names. Those that compare as equal stay in the order of their names; nil: all do. A holder whose own
// process waits has no waiter in its queue, and is the oldest as a rule.
var orders = map[order]func(a, b summary) int{
	"name":    nil,
	"wait":    func(a, b summary) int { return cmp.Or(a.waits().Compare(b.waits()), a.oldest.Compare(b.oldest)) },
	"waiters": func(a, b summary) int { return cmp.Or(cmp.Compare(b.waiters, a.waiters), a.oldest.Compare(b.oldest)) },
	"age":     func(a, b summary) int { return a.oldest.Compare(b.oldest) },
}

// addTo adds the flag to a command.
func (o *order) addTo(cmd *cobra.Command) {
	cmd.Flags().Var(o, "sort", "the order: name, wait, waiters or age")
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions([]string{"name", "wait", "waiters", "age"}, cobra.ShellCompDirectiveNoFileComp))
}

// sort sorts names, which are in byte order. It does nothing if that is the order.
func (o order) sort(all []listed) {
	compare := orders[o]
	if compare == nil {
		return
	}
	type pair struct {
		listed
		summary
	}
	pairs := make([]pair, len(all))
	for i, info := range all {
		pairs[i] = pair{info, summarize(info.LockInfo)}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return compare(a.summary, b.summary) })
	for i, p := range pairs {
		all[i] = p.listed
	}
}

// String returns the order.
func (o *order) String() string { return string(*o) }

// Type returns the name of the value in the help.
func (o *order) Type() string { return "order" }

// Set sets the order.
func (o *order) Set(text string) error {
	if _, ok := orders[order(text)]; !ok {
		return errors.New("want one of name, wait, waiters, age")
	}
	*o = order(text)
	return nil
}
