package fence

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Key is the name of the header that carries sequencers. It is a gRPC metadata key as it
// stands, and the name of an HTTP header in upper or lower case. There is one value for each
// name of the locks on whose behalf the message is sent.
const Key = "zklock-sequencer"

// maxValues is how many sequencers a receiver accepts. It is also how many names can be
// locked together. A sender leaves none out: its holder may have lost that very lock.
const maxValues = 128

// Values returns the values to send under Key with a call that is made on behalf of
// ctx: the sequencers of the locks that ctx carries and that are still held. It is
// empty if there are none. If several locks have the same name, in two ensembles for
// example, only the innermost lock's sequencer is sent.
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

// nearest returns the sequencers to send on behalf of ctx. There is one for each
// name, since a receiver compares all tokens of one name.
func nearest(ctx context.Context) []Sequencer {
	var all []Sequencer
	for _, s := range Held(ctx) {
		if !slices.ContainsFunc(all, func(t Sequencer) bool { return t.Name == s.Name }) {
			all = append(all, s)
		}
	}
	return all
}

// AddValues returns the values to send under Key if the call has values under Key
// already, for instance because it passes on a call that was received. The result is
// those values, followed by those of Values. The receiver refuses the call if any of
// them is stale. AddValues does not change values.
//
// A receiver takes all values of one name for those of one lock. So if ctx carries a
// lock of the same name as a value that is passed on, that value is left out: the
// nearest lock counts. Services that pass sequencers on to each other should
// therefore use the same ensemble and root, or different names.
//
// A receiver accepts 128 values. AddValues returns all, also if there are more: then the
// receiver refuses the call, because it cannot check every lock of the call.
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
			all = append(all, text) // also if it cannot be parsed: the receiver will refuse it
		}
	}
	for _, s := range own {
		all = append(all, s.String())
	}
	return all
}

// texts splits values that were joined with commas in transit, as HTTP allows.
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

// ParseValues parses the values that were received under Key, and sets the origin of
// each sequencer. It splits values that were joined with commas in transit. If one
// value is bad, it returns an error and no sequencers, because the sender meant that
// value to be checked too.
func ParseValues(values []string, origin string) ([]Sequencer, error) {
	var all []Sequencer
	for text := range texts(values) {
		if len(all) == maxValues {
			return nil, fmt.Errorf("fence: the message has more than %d sequencers", maxValues)
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
