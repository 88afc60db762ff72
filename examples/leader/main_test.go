package main

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
)

// In a synctest bubble the time until a session expires passes at once.
func TestRunOnMem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), nil, &out); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		want := regexp.MustCompile(`^(replica-\d) leads, token \S+
(replica-\d) is killed
(replica-\d) leads, token \S+, (?:9|1[0-3])\.\ds after the kill
(replica-\d) is killed
(replica-\d) leads, token \S+, (?:9|1[0-3])\.\ds after the kill
$`)
		m := want.FindStringSubmatch(out.String())
		if m == nil || m[1] != m[2] || m[3] != m[4] || m[1] == m[3] || m[5] == m[1] || m[5] == m[3] {
			t.Errorf("the output is\n%s", &out)
		}
	})
}
