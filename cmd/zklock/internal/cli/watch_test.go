package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

func TestEventsOfAQueue(t *testing.T) {
	at := func(node string, held bool, label string) zklock.Contender {
		return zklock.Contender{Node: node, Zxid: 7, Held: held, Label: label}
	}
	a, b, c := at("a", true, ""), at("b", false, ""), at("c", false, "")
	granted, labelled := at("b", true, ""), at("b", true, "row 2")
	again := b
	again.Zxid = 8
	for _, step := range []struct {
		before, after []zklock.Contender
		first         bool
		want          string
	}{
		{nil, nil, true, ""},
		{nil, []zklock.Contender{a, b}, true, "present a, present b"},
		{nil, []zklock.Contender{a}, false, "arrived a"},
		{[]zklock.Contender{a, b}, []zklock.Contender{a, b}, false, ""},
		{[]zklock.Contender{a, b}, []zklock.Contender{granted, c}, false, "left a, granted b, arrived c"},
		{[]zklock.Contender{granted}, []zklock.Contender{labelled}, false, "changed b"},
		{[]zklock.Contender{b}, []zklock.Contender{again}, false, "left b, arrived b"},
		{[]zklock.Contender{a}, nil, false, "left a"},
	} {
		var got []string
		for _, e := range events(step.before, step.after, step.first) {
			got = append(got, e.what+" "+e.contender.Node)
		}
		if text := strings.Join(got, ", "); text != step.want {
			t.Errorf("%s, want %s", text, step.want)
		}
	}
}

// TestEventsWhileTheEnsembleIsGone: the loss is reported once, and afterwards all that is there.
func TestEventsWhileTheEnsembleIsGone(t *testing.T) {
	var b strings.Builder
	w := &eventWriter{w: &b, f: formatJSON, name: "x"}
	holder := zklock.Contender{Node: "a", Zxid: 1 << 60, Held: true, Label: "\x1b"}
	now := time.Unix(1e9, 0)
	gone := errors.New("gone")
	for _, err := range []error{w.unknown(gone, now), w.unknown(gone, now), w.show([]zklock.Contender{holder}, now), w.show([]zklock.Contender{holder}, now),
		w.unknown(gone, now), w.unknown(gone, now), w.show(nil, now), w.show([]zklock.Contender{holder}, now)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for line := range strings.Lines(b.String()) {
		var e eventJSON
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if (e.Contender == nil) != (e.Event == "unknown" || e.Event == "empty") || e.Time != "2001-09-09T01:46:40.000Z" || e.Name != "x" {
			t.Errorf("%s", line)
		}
		if e.Contender != nil && e.Contender.Zxid != "0x1000000000000000" {
			t.Errorf("%s", line)
		}
		got = append(got, e.Event)
	}
	if text := strings.Join(got, " "); text != "unknown present unknown empty arrived" {
		t.Errorf("%s", text)
	}
	b.Reset()
	w = &eventWriter{w: &b, f: formatTable, name: "x"}
	if err := w.show([]zklock.Contender{holder}, now); err != nil || strings.Contains(b.String(), "\x1b") || !strings.HasSuffix(b.String(), "  a@0x1000000000000000\n") {
		t.Errorf("%q, %v", b.String(), err)
	}
	b.Reset()
	holder.Revoked = "maintenance\x1b"
	if err := w.show([]zklock.Contender{holder}, now); err != nil || !strings.Contains(b.String(), "  changed  ") || !strings.HasSuffix(b.String(), `  asked to give it back: maintenance\x1b`+"\n") {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// TestWatchKnowsSinceWhenItHolds: watch sees each grant, however long after the change before. What was
// there at its start, or has changed in an outage, is not known.
func TestWatchKnowsSinceWhenItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		w := &eventWriter{w: &b, f: formatJSON, name: "x"}
		at := func(node string, held bool) zklock.Contender {
			return zklock.Contender{Node: node, Zxid: 7, Held: held}
		}
		for _, queue := range [][]zklock.Contender{{at("a", true), at("b", false)}, {at("b", true)}, nil, {at("c", true)}} {
			if err := w.show(queue, time.Now()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if err := errors.Join(w.unknown(errors.New("gone"), time.Now()), w.show([]zklock.Contender{at("d", true)}, time.Now())); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(b.String()) {
			var e eventJSON
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if e.Contender != nil && e.Contender.Held && e.Event != "left" {
				got = append(got, fmt.Sprint(e.Event, " ", e.Contender.Node, " ", e.Contender.HeldSince != 0))
			}
		}
		if text := strings.Join(got, ", "); text != "present a false, granted b true, arrived c true, present d false" {
			t.Error(text)
		}
	})
}

// TestOverviewShowsTheBusiest: of many names, those with the most waiters, and then the oldest.
func TestOverviewShowsTheBusiest(t *testing.T) {
	now := time.Unix(1e9, 0)
	o := overview{limit: 3, at: now}
	for i := range 1000 {
		info := zklock.LockInfo{Name: fmt.Sprintf("n%03d", i), Contenders: []zklock.Contender{{Held: true, Mode: zklock.Exclusive, Host: "h", Since: now.Add(-time.Duration(i) * time.Second)}}}
		if i == 500 || i == 600 {
			for range i / 100 {
				info.Contenders = append(info.Contenders, zklock.Contender{Session: int64(len(info.Contenders) + i), Since: now.Add(-time.Minute)})
			}
		}
		o.add(info)
		if len(o.rows) > 4*o.limit {
			t.Fatalf("%d rows are kept", len(o.rows))
		}
	}
	o.trim()
	lines := o.lines(58)
	text := squeeze(strings.Join(lines, "\n"))
	want := "1000 names in use, 11 waiting processes\n\nNAME MODE HOLDER SINCE WAITERS LONGES\nn600 exclusive h asked 10m0s ago 6 1m0s\nn500 exclusive h asked 8m20s ago 5 1m0s\nn999 exclusive h asked 16m39s ago 0 -\n\nq ends"
	if text = strings.SplitN(text, " ", 3)[2]; text != want {
		t.Errorf("%s\nwant %s", text, want)
	}
	for _, line := range lines {
		if len(line) > 58 {
			t.Errorf("%q is too long", line)
		}
	}
}
