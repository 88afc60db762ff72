package doctor

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestVersionAdvisories(t *testing.T) {
	for text, want := range map[string][]string{
		"3.4.14-4c25d48, built on 03/06/2019 16:18 GMT": {"ZOOKEEPER-4785", "CVE-2023-44981"},
		"3.7.2-x": {"ZOOKEEPER-4785", "CVE-2024-23944"},
		"3.8.0-${mvngit.commit.id}, built on ...": {"ZOOKEEPER-4785", "CVE-2023-44981", "CVE-2024-23944", "CVE-2026-24281", "CVE-2026-59739", "CVE-2026-59969", "CVE-2026-79993"},
		"3.8.3-1": {"ZOOKEEPER-4785", "CVE-2024-23944", "CVE-2026-24281", "CVE-2026-59739", "CVE-2026-59969", "CVE-2026-79993"},
		"3.8.5":   {"CVE-2026-24281", "CVE-2026-59739", "CVE-2026-59969", "CVE-2026-79993"},
		"3.8.6-1": {"CVE-2026-59739", "CVE-2026-59969", "CVE-2026-79993"},
		"3.8.7":   nil,
		"3.8.10":  nil,
		"3.9.0":   {"ZOOKEEPER-4785", "CVE-2023-44981", "CVE-2024-23944", "CVE-2024-51504", "CVE-2025-58457", "CVE-2026-24281", "CVE-2026-59739", "CVE-2026-59969", "CVE-2026-79993"},
		"3.9.1":   {"ZOOKEEPER-4785", "CVE-2024-23944", "CVE-2024-51504", "CVE-2025-58457", "CVE-2026-24281", "CVE-2026-59739", "CVE-2026-59969", "CVE-2026-79993"},
		"3.9.2":   {"CVE-2024-51504", "CVE-2025-58457", "CVE-2026-24281", "CVE-2026-59739", "CVE-2026-59969", "CVE-2026-79993"},
		"3.9.3":   {"ZOOKEEPER-4925", "CVE-2025-58457", "CVE-2026-24281", "CVE-2026-59739", "CVE-2026-59969", "CVE-2026-79993"},
		"3.9.4":   {"CVE-2026-24281", "CVE-2026-59739", "CVE-2026-59969", "CVE-2026-79993"},
		"3.9.5":   {"CVE-2026-59739", "CVE-2026-59969", "CVE-2026-79993"},
		"3.9.6":   nil,
		"4.0.0":   nil,
	} {
		v := parseVersion(text)
		var got []string
		for _, a := range advisories {
			if a.affects(v) {
				got = append(got, a.id)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if v := parseVersion("unknown"); v != (version{}) {
		t.Errorf("%v", v)
	}
}

// TestAdviceLeadsToNoOtherAdvisory: the release that an advisory recommends has no fault that
// another one names.
func TestAdviceLeadsToNoOtherAdvisory(t *testing.T) {
	for _, a := range advisories {
		releases := regexp.MustCompile(`\b3\.\d+\.\d+`).FindAllString(a.advice, -1)
		if len(releases) == 0 {
			t.Errorf("%s names no release: %s", a.id, a.advice)
		}
		for _, release := range releases {
			for _, b := range advisories {
				if b.affects(parseVersion(release)) {
					t.Errorf("%s leads to %s, which has %s", a.id, release, b.id)
				}
			}
		}
	}
}

func TestVersionOfAServersReply(t *testing.T) {
	got := fields("Zookeeper version: 3.8.0-x, built on 2022\nLatency min/avg/max: 0/0.5/2\nMode: leader\nnonsense\n", ":")
	if got["zookeeper version"] != "3.8.0-x, built on 2022" || got["mode"] != "leader" || len(got) != 3 {
		t.Errorf("%q", got)
	}
	for said, want := range map[string]string{"": "", "Connections: 1\n": ", 0 connections", "Connections: 2\n": ", 1 connection", "Connections: 41\n": ", 40 connections"} {
		if s := (&server{srvr: fields(said, ":")}); s.connections() != want {
			t.Errorf("%q: %q, want %q", said, s.connections(), want)
		}
	}
	s := server{conf: fields("clientPort=2181\ntickTime=2000\nmaxClientCnxns=60\n", "=")}
	if tick, sure := s.tick(); tick.Seconds() != 2 || !sure {
		t.Errorf("%v, %v", tick, sure)
	}
	if n, ok := s.number("maxClientCnxns"); n != 60 || !ok {
		t.Errorf("%v, %v", n, ok)
	}
}

// TestFaultsOfAReleaseDoNotHideWhatIsWrong: what is wrong now comes first, and the servers' own lines
// before the known faults of their release, which have one line.
func TestFaultsOfAReleaseDoNotHideWhatIsWrong(t *testing.T) {
	var r Report
	up := server{host: "zk1", version: version{3, 8, 0}, srvr: map[string]string{"mode": "leader"}}
	r.reach(Patient{}, []server{up, {host: "zk2", version: version{3, 8, 0}, srvr: map[string]string{"mode": "follower"}}, {host: "zk3", version: version{3, 9, 5}, srvr: map[string]string{"mode": "follower"}}})
	r.ok("queues", "none")
	r.toDo("orphans", "one", "delete it")
	r.order()
	var levels, whats []string
	for _, f := range r.Short() {
		levels, whats = append(levels, string(f.Level)), append(whats, f.What)
	}
	if got := strings.Join(levels, " "); got != "to do warning ok ok ok ok ok ok warning warning" {
		t.Errorf("%s", got)
	}
	if got := strings.Join(whats, " "); got != "orphans version server server server containers containers queues version version" {
		t.Errorf("%s", got)
	}
	short := r.Short()
	if got := short[8].Text; got != "ZooKeeper 3.8.0 has 7 known faults that concern locks: ZOOKEEPER-4785, CVE-2023-44981, CVE-2024-23944, CVE-2026-24281, CVE-2026-59739, CVE-2026-59969, CVE-2026-79993" {
		t.Errorf("%s", got)
	}
	if len(r.Findings) != 8+7+3 || r.Findings[8].Fault != "ZOOKEEPER-4785" || r.Findings[8].Advice == short[8].Advice {
		t.Errorf("%d findings, %+v", len(r.Findings), r.Findings[8])
	}
}
