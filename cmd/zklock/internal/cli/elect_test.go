//go:build unix

package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestElectWritesLeaders: a leader, the time without one, and an outage, which is reported once.
func TestElectWritesLeaders(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := election.Leader{Value: "10.0.0.7:80\x1b", Host: "web-3", PID: 812, Token: zklock.Token{Zxid: 1 << 60}, Node: "a"}
	for _, f := range []format{formatTable, formatJSON} {
		var b strings.Builder
		w := &leaderWriter{w: &b, f: f, name: "x"}
		gone := errors.New("gone")
		if err := errors.Join(w.without("none", nil, now), w.leads(l, now), w.without("unknown", gone, now), w.without("unknown", gone, now),
			w.leads(l, now), w.without("unknown", gone, now), w.without("none", nil, now)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(b.String()) {
			if f == formatTable {
				got = append(got, strings.Fields(line)[1])
				if strings.Contains(line, "leads") && !strings.HasSuffix(line, `web-3/812  10.0.0.7:80\x1b  1000000000000000.00000000`+"\n") {
					t.Errorf("the line of a leader is %q", line)
				}
				continue
			}
			var s stateJSON
			if err := json.Unmarshal([]byte(line), &s); err != nil {
				t.Fatal(err)
			}
			if (s.Leader != nil) != (s.Event == "leads") || (s.Reason != "") != (s.Event == "unknown") || s.Leader != nil && s.Leader.Value != l.Value {
				t.Errorf("the state is %s", line)
			}
			got = append(got, s.Event)
		}
		if text := strings.Join(got, " "); text != "none leads unknown leads unknown none" {
			t.Errorf("%s: %s", f, text)
		}
	}
}

// TestRevokeTakesTheVeryNode: the request reaches the holder whose node has that zxid, and no
// other one.
func TestRevokeTakesTheVeryNode(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	c := client(t, e)
	l := hold(t, c.Mutex("x"), zklock.WithRevocable())
	queue, err := c.Contenders(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	other := queue[0]
	other.Zxid++
	if code, _, stderr := command(t, e, "revoke", "x", node(other)); code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "not asked") {
		t.Errorf("another zxid: %d, %q", code, stderr)
	}
	select {
	case <-l.Revoked():
		t.Error("the holder was asked by a request for another contender")
	default:
	}
	if code, out, stderr := command(t, e, "revoke", "--reason", "maintenance", "x", node(queue[0])); code != 0 || out+stderr != "" {
		t.Errorf("%d, %q, %q", code, out, stderr)
	}
	<-l.Revoked()
	if _, out, _ := command(t, e, "who", "-o", "wide", "x"); !strings.Contains(squeeze(out), " yes maintenance -") {
		t.Errorf("the wide table is %s", out)
	}
	if queue, err = c.Contenders(t.Context(), "x"); err != nil || queue[0].Revoked != "maintenance" || !queue[0].Held {
		t.Errorf("%+v, %v", queue, err)
	}
}
