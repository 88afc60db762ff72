package main

import (
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// TestParseKills: the flag sets what others do not. A worker may be two commands.
func TestParseKills(t *testing.T) {
	o, err := parse([]string{"-worker", "./one a + ./two", "-kills", "5", "-restart", "-beat", "3s"})
	if c := o.config; err != nil || c.Kills != 5 || !c.Restart || c.Beat != 3*time.Second || !c.Direct || len(c.Names) != 1 || len(c.Faults) > 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if all := commands(o.worker); len(all) != 2 || strings.Join(all[0], " ") != "./one a" || strings.Join(all[1], " ") != "./two" {
		t.Errorf("the commands are %q", all)
	}
	if o, err = parse([]string{"-library", "zk", "-kills", "5", "-names", "4"}); err != nil || len(o.config.Names) != 4 {
		t.Errorf("%q, %v", o.config.Names, err)
	}
}

// TestSuccessionsAreSummedUp: the line has the middle and the slowest of what was measured.
func TestSuccessionsAreSummedUp(t *testing.T) {
	var events []history.Event
	want := "no kill of a holder was measured"
	for i := range 4 {
		if got := successions(events); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		killed := int64(i+1) * int64(time.Minute)
		events = append(events,
			history.Event{At: killed - 1, Kind: history.Granted, Worker: 2 * i, ID: 2*i + 1, Name: "a"},
			history.Event{At: killed, Kind: history.Kill, Worker: 2 * i, Reason: history.HolderKilled},
			history.Event{At: killed + int64(i+1)*int64(time.Second), Kind: history.Granted, Worker: 2*i + 1, ID: 2*i + 2, Name: "a"},
		)
		want = []string{
			"next grants after 1 kills of holders: p50 1s, p99 1s, the slowest 1s", "next grants after 2 kills of holders: p50 2s, p99 2s, the slowest 2s",
			"next grants after 3 kills of holders: p50 2s, p99 3s, the slowest 3s", "",
		}[i]
	}
}
