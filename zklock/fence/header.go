package fence

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Key is the name under which sequencers travel: of a gRPC metadata key as it
// stands, and of an HTTP header in any case of letters. There is one value for
// each name of each lock on whose behalf the message is sent.
const Key = "zklock-sequencer"

// maxValues is how many sequencers a message may carry: as many names as can
// be locked together.
const maxValues = 128

// Values returns what is to be sent under Key with a call made on behalf of
// ctx: the sequencers of the locks that ctx carries and that are still held.
// It is empty if there are none.
func Values(ctx context.Context) []string {
	held := Held(ctx)
	if len(held) == 0 {
		return nil
	}
	values := make([]string, len(held))
	for i, s := range held {
		values[i] = s.String()
	}
	return values
}

// AddValues returns what is to be sent under Key with a call made on behalf of ctx
// if values are under it already, of a call that is passed on for instance: those,
// and those of Values that are not among them. The receiver refuses the call if
// any of them is stale. values is left as it is.
func AddValues(ctx context.Context, values []string) []string {
	own := Values(ctx)
	if len(values) == 0 {
		return own
	}
	all := slices.Clip(values)
	for _, v := range own {
		if !slices.ContainsFunc(values, func(joined string) bool { return contains(joined, v) }) {
			all = append(all, v)
		}
	}
	return all
}

// contains reports whether value is among those that were joined with commas.
func contains(joined, value string) bool {
	for text := range strings.SplitSeq(joined, ",") {
		if strings.Trim(text, " \t") == value {
			return true
		}
	}
	return false
}

// ParseValues reads what was received under Key, and sets where it came from.
// Values that were joined with commas on the way, as HTTP allows, are taken
// apart. One bad value makes all of them an error: the sender meant something
// by it.
func ParseValues(values []string, origin string) ([]Sequencer, error) {
	var all []Sequencer
	for _, joined := range values {
		for text := range strings.SplitSeq(joined, ",") {
			if len(all) == maxValues {
				return nil, fmt.Errorf("fence: more than %d sequencers in one message", maxValues)
			}
			s, err := Parse(strings.Trim(text, " \t"))
			if err != nil {
				return nil, err
			}
			s.Origin = origin
			all = append(all, s)
		}
	}
	return all, nil
}
