package fence

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Key is the name under which sequencers travel: of a gRPC metadata key as it
// stands, and of an HTTP header in any case of letters. There is one value for
// each name of the locks on whose behalf the message is sent.
const Key = "zklock-sequencer"

// maxValues is how many sequencers a message may carry: as many names as can
// be locked together.
const maxValues = 128

// Values returns what is to be sent under Key with a call made on behalf of
// ctx: the sequencers of the locks that ctx carries and that are still held.
// It is empty if there are none. Of several locks with one name, as in two
// ensembles, it is the innermost one's.
func Values(ctx context.Context) []string {
	held := nearest(ctx)
	if len(held) == 0 {
		return nil
	}
	values := make([]string, len(held))
	for i, s := range held {
		values[i] = s.String()
	}
	return values
}

// nearest returns the sequencers that are to be sent on behalf of ctx: one for each
// name, since a receiver compares all tokens of one name.
func nearest(ctx context.Context) []Sequencer {
	var all []Sequencer
	for _, s := range Held(ctx) {
		if !slices.ContainsFunc(all, func(t Sequencer) bool { return t.Name == s.Name }) {
			all = append(all, s)
		}
	}
	return all[:min(len(all), maxValues)]
}

// AddValues returns what is to be sent under Key with a call made on behalf of ctx
// if values are under it already, of a call that is passed on for instance: those,
// and those of Values. The receiver refuses the call if any of them is stale.
// values is left as it is.
//
// A receiver takes all values of one name for those of one lock. If ctx carries a
// lock, the values of its name that are passed on are left out: the nearest
// lock counts. Services that pass sequencers on to each other should therefore have
// one ensemble and root in common, or names that differ.
//
// A receiver accepts 128 values. If there are more, the first ones of values are
// left out, which are those of the farthest locks.
func AddValues(ctx context.Context, values []string) []string {
	own := nearest(ctx)
	if len(own) == 0 {
		return values
	}
	names := make(map[string]struct{}, len(own))
	for _, s := range own {
		names[s.Name] = struct{}{}
	}
	var all []string
	for text := range texts(values) {
		s, err := Parse(text)
		if _, ours := names[s.Name]; err != nil || !ours {
			all = append(all, text) // a bad one too: it is for the receiver to refuse
		}
	}
	for _, s := range own {
		all = append(all, s.String())
	}
	return all[max(0, len(all)-maxValues):]
}

// texts takes values apart that were joined with commas on the way, as HTTP allows.
func texts(values []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, joined := range values {
			for text := range strings.SplitSeq(joined, ",") {
				if !yield(strings.Trim(text, " \t")) {
					return
				}
			}
		}
	}
}

// ParseValues reads what was received under Key, and sets where it came from.
// Values that were joined with commas on the way are taken apart. One bad value
// makes all of them an error: the sender meant something by it.
func ParseValues(values []string, origin string) ([]Sequencer, error) {
	var all []Sequencer
	for text := range texts(values) {
		if len(all) == maxValues {
			return nil, fmt.Errorf("fence: more than %d sequencers in one message", maxValues)
		}
		s, err := Parse(text)
		if err != nil {
			return nil, err
		}
		s.Origin = origin
		all = append(all, s)
	}
	return all, nil
}
