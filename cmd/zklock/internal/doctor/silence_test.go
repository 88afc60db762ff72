package doctor

import (
	"strings"
	"testing"
	"time"
)

// A leader that falls silent costs locks if leases are shorter than the time until the others have another leader.
func TestSilence(t *testing.T) {
	conf := func(text string) map[string]string { return fields(text, "=") }
	for _, c := range []struct {
		what    string
		timeout time.Duration
		s       server
		level   Level
		says    string // "" if nothing is to be said
	}{
		{"defaults", 30 * time.Second, server{conf: conf("tickTime=2000\nsyncLimit=5\n")}, OK, "no server's silence costs a lock: leases last for 18.2s at least"},
		{"short timeout", 10 * time.Second, server{conf: conf("tickTime=2000\nsyncLimit=5\n")}, Warning, "a leader that falls silent costs all locks"},
		{"long syncLimit", 30 * time.Second, server{conf: conf("tickTime=2000\nsyncLimit=10\n")}, Warning, "about 23s"},
		{"no conf", 30 * time.Second, server{}, Unknown, "is not known"},
		{"standalone", 30 * time.Second, server{srvr: fields("Mode: standalone\n", ":")}, OK, ""},
	} {
		var r Report
		c.s.granted = c.timeout
		r.silence(Patient{TickTime: 3 * time.Second}, []server{c.s, c.s})
		if c.says == "" {
			if len(r.Findings) > 0 {
				t.Errorf("%s: %+v, want nothing", c.what, r.Findings)
			}
			continue
		}
		if len(r.Findings) != 1 || r.Findings[0].Level != c.level || !strings.Contains(r.Findings[0].Text, c.says) {
			t.Errorf("%s: %+v, want one finding that says %q", c.what, r.Findings, c.says)
		}
		if c.level == Warning && !strings.Contains(r.Findings[0].Advice, "session_timeout=") {
			t.Errorf("%s: advice %q, want a session timeout", c.what, r.Findings[0].Advice)
		}
	}
}
