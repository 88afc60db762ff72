package doctor

import (
	"slices"
	"testing"
)

func TestVersionAdvisories(t *testing.T) {
	for text, want := range map[string][]string{
		"3.4.14-4c25d48, built on 03/06/2019 16:18 GMT": {"ZOOKEEPER-4785", "CVE-2023-44981"},
		"3.7.2-x": {"ZOOKEEPER-4785", "CVE-2024-23944"},
		"3.8.0-${mvngit.commit.id}, built on ...": {"ZOOKEEPER-4785", "CVE-2023-44981", "CVE-2024-23944"},
		"3.8.3-1": {"ZOOKEEPER-4785", "CVE-2024-23944"},
		"3.8.4-1": nil,
		"3.8.10":  nil,
		"3.9.0":   {"ZOOKEEPER-4785", "CVE-2023-44981", "CVE-2024-23944", "CVE-2024-51504"},
		"3.9.1":   {"ZOOKEEPER-4785", "CVE-2024-23944", "CVE-2024-51504"},
		"3.9.2":   {"CVE-2024-51504"},
		"3.9.3":   {"ZOOKEEPER-4925"},
		"3.9.4":   nil,
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

func TestVersionOfAServersReply(t *testing.T) {
	got := fields("Zookeeper version: 3.8.0-x, built on 2022\nLatency min/avg/max: 0/0.5/2\nMode: leader\nnonsense\n", ":")
	if got["zookeeper version"] != "3.8.0-x, built on 2022" || got["mode"] != "leader" || len(got) != 3 {
		t.Errorf("%q", got)
	}
	s := server{conf: fields("clientPort=2181\ntickTime=2000\nmaxClientCnxns=60\n", "=")}
	if tick, sure := s.tick(); tick.Seconds() != 2 || !sure {
		t.Errorf("%v, %v", tick, sure)
	}
	if n, ok := s.number("maxClientCnxns"); n != 60 || !ok {
		t.Errorf("%v, %v", n, ok)
	}
}
