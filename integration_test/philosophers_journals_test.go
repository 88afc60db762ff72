package integration_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestPhilosophersAreJudged: the judge accepts a journal of two circles that were broken as they should be, and
// refuses each that differs from it in one thing.
func TestPhilosophersAreJudged(t *testing.T) {
	const pair = `
		p0-0 takes a, p0-0 has a, p1-0 takes b, p1-0 has b, p2-0 takes c, p2-0 has c,
		p0-0b takes b, p1-0b takes a,`
	const victim = `p1-0b failed p1-0b p0-0b, p1-0 gives b, p0-0b has b,`
	const rest = `
		p2-0b takes a, p0-0b gives b, p0-0 gives a, p2-0b has a, p2-0b gives a, p2-0 gives c`
	for name, c := range map[string]struct {
		journal string
		wrong   string // what the judge finds wrong; "": nothing
		ended   int
		exempt  int
	}{
		"a circle":                           {pair + victim + rest, "", 1, 0},
		"none":                               {pair[:strings.Index(pair, "p1-0b")] + "p1-0 gives b, p0-0b has b," + rest, "", 0, 0},
		"a victim without a circle":          {pair + victim + "p2-0b takes a, p2-0b failed p2-0b p0-0b", "no such circle when p2-0b", 1, 0},
		"a first take is a victim":           {pair + victim + "p3-0 takes b, p3-0 failed p3-0 p0-0b", "no such circle when p3-0", 1, 0},
		"a victim before the circle closed":  {strings.Replace(pair, "p1-0b takes a", "p0-0b failed p0-0b p1-0b, p1-0b takes a", 1) + "p1-0b has a", "no such circle when p0-0b", 0, 0},
		"a victim that names a wait too few": {pair + strings.Replace(victim, "failed p1-0b p0-0b", "failed p1-0b", 1) + rest, "no such circle when p1-0b", 0, 0},
		"a victim that names another first":  {pair + strings.Replace(victim, "failed p1-0b p0-0b", "failed p0-0b p1-0b", 1) + rest, "no such circle when p1-0b", 0, 0},
		"a victim that names other waits":    {pair + strings.Replace(victim, "failed p1-0b p0-0b", "failed p1-0b p2-0b", 1) + rest, "no such circle when p1-0b", 0, 0},
		"two victims":                        {pair + strings.Replace(victim, "p0-0b has b", "p0-0b failed p0-0b p1-0b", 1), "p0-0b is a second victim", 1, 0},
		"no victim, and no end":              {pair, "has not ended", 0, 0},
		"a circle that ends by a limit":      {pair + "p1-0b failed", "without a victim", 0, 0},
		"a wait that fails in another way":   {pair + victim + "p2-0b takes a, p2-0b failed", "p2-0b has failed in another way", 1, 0},
		"a grant within a circle":            {pair + "p1-0b has a", "p1-0b has got its fork", 0, 0},
		"three, in order": {`p0-0 has a, p1-0 has b, p2-0 has c, p0-0b takes b, p1-0b takes c, p2-0b takes a,
			p2-0b failed p2-0b p0-0b p1-0b, p2-0 gives c, p1-0b has c`, "", 1, 0},
		"three, in another order": {`p0-0 has a, p1-0 has b, p2-0 has c, p0-0b takes b, p1-0b takes c, p2-0b takes a,
			p2-0b failed p2-0b p1-0b p0-0b, p2-0 gives c, p1-0b has c`, "no such circle when p2-0b", 0, 0},
		"a loss ends a circle":                        {pair + "p1-0b failed, p1-0 gives b lost, p0-0b has b," + rest, "", 0, 1},
		"a grant, and then a process says it lost":    {pair + "p0-0b has b, p1-0b failed, p1-0 gives b lost," + rest, "", 0, 2},
		"a victim of a wait that was lost":            {pair + "p0-0b failed, p0-0 gives a lost, p1-0b failed p1-0b p0-0b", "", 0, 2},
		"a loss after the meal excuses no wait":       {pair + "p1-0b failed p1-0b p2-0b, p1-0 gives b, p0-0b has b, p0-0 gives a lost", "no such circle when p1-0b", 0, 0},
		"a loss of another process excuses no victim": {pair + victim + "p2-0b takes a, p2-0b failed, p2-0 gives c lost, p3-0b takes a, p3-0b failed p3-0b p0-0b", "no such circle when p3-0b", 1, 1},
		"a fork is lost, and granted to a circle before that is said": {`p0-0 has a, p0-0b takes c, p1-0 has a, p2-0 has b, p1-0b takes b, p2-0b takes a,
			p2-0b failed p2-0b p1-0b, p2-0 gives b, p1-0b has b, p0-0b failed, p0-0 gives a lost`, "", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			table := judgePhilosophers(journalOf(t, c.journal))
			said := strings.Join(table.wrong, "\n")
			if (said == "") != (c.wrong == "") || !strings.Contains(said, c.wrong) || table.ended != c.ended || table.exempt != c.exempt {
				t.Errorf("%d circles ended, %d exempt, and wrong is: %q\nwant %d, %d and %q", table.ended, table.exempt, said, c.ended, c.exempt, c.wrong)
			}
		})
	}
}

// journalOf reads a journal, in which a text such as "p0-1b takes a" is a report. After has failed are the labels
// that its error names, and after gives a fork may be why it was lost.
func journalOf(t *testing.T, text string) (journal []report) {
	t.Helper()
	for _, line := range strings.Split(text, ",") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) == 1 {
			t.Fatalf("%q is not a report", line)
		}
		f := &forkReport{Label: words[0], Second: strings.HasSuffix(words[0], "b")}
		r := report{What: words[1], At: int64(len(journal) + 1), Fork: f}
		switch {
		case r.What == "failed":
			f.Circle, r.Err = words[2:], fmt.Sprint("failed ", words[2:])
		default:
			f.Fork, r.Err = words[2], strings.Join(words[3:], " ")
		}
		journal = append(journal, r)
	}
	return journal
}
