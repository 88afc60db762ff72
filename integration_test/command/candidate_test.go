//go:build linux

package command_test

import (
	"strings"
	"testing"
)

// TestCandidatesAreShownAsSuch: a command that is meant to run for long, and its standby on another
// machine, are a leader and a candidate for all lists; so are those of an election. Others are not.
func TestCandidatesAreShownAsSuch(t *testing.T) {
	e := servers(t)
	url := urlOf(e.Hosts())
	state := func(name, state string) func() bool {
		return func() bool {
			_, out, _ := finish(t, url, nil, "who", name)
			return strings.Contains(out, "\n"+state+" ")
		}
	}
	for name, args := range map[string][]string{
		"candidate/run":   {"run", "--candidate", "candidate/run", "--", "sleep", "1000"},
		"candidate/elect": {"elect", "candidate/elect", "--", "sleep", "1000"},
	} {
		start(t, url, nil, args...)
		eventually(t, name+" has a leader", state(name, "leader"))
		start(t, url, nil, args...)
		eventually(t, name+" has a candidate", state(name, "candidate"))
	}
	start(t, url, nil, "run", "candidate/elect", "--", "true")
	eventually(t, "a plain run waits for the leader", state("candidate/elect", "waits"))
	_, out, _ := finish(t, url, nil, "ls", "--sort", "wait", "candidate/")
	lines := strings.Split(out, "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[1], "candidate/elect") || !strings.Contains(lines[1], "(leader)") || !strings.Contains(lines[1], "1 and 1 candidate") || !strings.Contains(lines[2], "0 and 1 candidate  -") {
		t.Errorf("ls:\n%s", out)
	}
}
