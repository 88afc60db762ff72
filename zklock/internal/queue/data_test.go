package queue

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzNodeData checks that a contender's data is at most 1 KiB of JSON, whatever its texts
// are, and keeps the fields that need no truncation. It also checks that any data of another
// client's node can be read.
func FuzzNodeData(f *testing.F) {
	f.Add("host-7", 812, "request 4711", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", []byte(`{"mode":"read","since":-1}`))
	f.Add("\u2028\u2029<>&\x00\xff", -1, "\"\\", "\x7f", []byte(`{"mode":{},"host":1}`))
	f.Fuzz(func(t *testing.T, host string, pid int, label, trace string, foreign []byte) {
		for _, mode := range []Mode{Exclusive, Shared, Permit} {
			d := Data{Host: host, PID: pid, Label: label, Trace: trace, Mode: mode.String(), Since: 1, Candidacy: mode != Shared}
			data := d.Encode()
			if len(data) == 0 || len(data) > maxNodeData || !json.Valid(data) {
				t.Fatalf("Encode returned %d bytes, want valid JSON of 1 to %d: %s", len(data), maxNodeData, data)
			}
			back, ok := Decode(data)
			if !ok || back.PID != pid || back.Mode != d.Mode || back.Since != 1 || back.Candidacy != d.Candidacy {
				t.Fatalf("%+v was decoded as %+v", d, back)
			}
		}
		for _, k := range []Kind{{Mode: Exclusive}, {Mode: Shared}, {Mode: Permit, Permits: 3}} {
			d, _ := Decode(foreign)
			if len(d.Label) > MaxLabel || len(d.Host) > maxHost || len(d.Trace) > maxTrace {
				t.Fatalf("decoded data with a text that is too long: %+v", d)
			}
			if mode := Effective(k, d).Mode; mode != k.Mode && !(k.Mode == Exclusive && mode == Shared) {
				t.Fatalf("with the data %s, a contender of mode %v counts as %v", foreign, k.Mode, mode)
			}
		}
	})
}

// Another client writes the reason of a request to give a lock back. However long the reason is, it
// does not shorten the holder's own texts.
func TestReasonShortensNoOtherText(t *testing.T) {
	d := Data{Host: "web-3.example.com", PID: 812, Label: strings.Repeat("l", MaxLabel), Trace: strings.Repeat("t", 55), Mode: Exclusive.String(), Since: 1, Candidacy: true}
	node := Default.Prefix(GUID{Session: 1, Serial: 1}, Kind{Mode: Exclusive}) + "0000000000"
	for _, reason := range []string{"r", strings.Repeat("r", 2*MaxReason), strings.Repeat("\n", MaxReason), strings.Repeat("\x01", MaxReason), strings.Repeat("\u2028", MaxReason), strings.Repeat("\xff", MaxReason)} {
		data, err := Revoke(node, d.Encode(), reason)
		got, ok := Decode(data)
		if err != nil || !ok || len(data) > maxNodeData || got.Revoked == "" {
			t.Fatalf("%q: %v, %d bytes, %+v", reason, err, len(data), got)
		}
		if got.Revoked = ""; got != d {
			t.Errorf("a request for %q leaves %+v of %+v", reason, got, d)
		}
	}
}

// A label that has at most MaxLabel bytes with its escapes is not cut, however long the other
// texts are with theirs: it may be an address.
func TestLabelIsNotCutForOtherTexts(t *testing.T) {
	for _, label := range []string{strings.Repeat("l", MaxLabel), strings.Repeat(`"`, MaxLabel/2), strings.Repeat("\x01", MaxLabel/6)} {
		for _, other := range []string{"web-3", strings.Repeat("<", 300), strings.Repeat("\u2028", 100)} {
			d := Data{Host: other, PID: 1<<31 - 1, Label: label, Trace: other, Mode: Exclusive.String(), Granted: true, Keep: true, Since: 1 << 45, Revoked: other, Candidacy: true}
			data := d.Encode()
			got, ok := Decode(data)
			if !ok || len(data) > maxNodeData || got.Label != label || got.Revoked == "" {
				t.Errorf("label %.10q..., other texts %.10q...: %d bytes, decoded as %+v", label, other, len(data), got)
			}
		}
	}
	// A label that takes more room is cut before the host.
	d := Data{Host: "web-3.example.com", Label: strings.Repeat("\x01", MaxLabel), Mode: Exclusive.String(), Since: 1}
	if got, ok := Decode(d.Encode()); !ok || got.Host != d.Host || got.Label == "" || got.Label == d.Label {
		t.Errorf("decoded as %+v", got)
	}
}

// The data say when a node's create was sent, if that was long after its contender began to wait. They
// still say so when they describe another holder, and Late takes no wait for a late create.
func TestLateCountsFromWhenTheCreateWasSent(t *testing.T) {
	const asked, sent, next = 1_000_000, 31_000_000, 90_000_000
	for what, c := range map[string]struct {
		wait     int64 // from Since to the create
		describe bool
	}{
		"sent at once":                   {0, false},
		"sent soon":                      {soon - 1, false},
		"sent after a wait":              {sent - asked, false},
		"sent at once, and handed over":  {0, true},
		"sent after a wait, handed over": {sent - asked, true},
	} {
		d := Data{Since: sent - c.wait}
		d.SendAt(sent)
		if c.describe {
			d.Asked(next)
			d.Asked(next + 1)
		}
		if got := d.Late(sent + 5); got > soon+5 {
			t.Errorf("%s: a node that was created 5 ms after its create was sent is %d ms late: %+v", what, got, d)
		}
		if got := d.Late(sent + 60_000); got < 60_000 || got > 60_000+soon {
			t.Errorf("%s: a node that was created a minute after its create was sent is %d ms late: %+v", what, got, d)
		}
	}
	if got := new(Data).Late(sent); got != 0 {
		t.Errorf("a node whose data say nothing is %d ms late", got)
	}
}
