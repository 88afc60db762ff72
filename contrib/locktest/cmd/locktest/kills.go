package main

import (
	"flag"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
)

// killHolders sets what a run with -kills needs, and the flags do not say: one name. Such a run has no faults.
func (o *options) killHolders(f *flag.FlagSet, names *int) {
	set := false
	f.Visit(func(f *flag.Flag) { set = set || f.Name == "names" })
	if !set {
		*names = 1
	}
	o.faults, o.config.Direct = "^$", true
}

// successions is a line about how soon killed holders had successors.
func successions(events []history.Event) string {
	times := judge.Successions(events)
	if len(times) == 0 {
		return "no kill of a holder was measured"
	}
	at := func(i int) time.Duration { return times[min(i, len(times)-1)].Round(time.Millisecond / 10) }
	return fmt.Sprintf("next grants after %d kills of holders: p50 %v, p99 %v, the slowest %v", len(times), at(len(times)/2), at(len(times)*99/100), at(len(times)-1))
}
