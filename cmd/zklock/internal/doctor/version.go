package doctor

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
)

// version is a version of ZooKeeper; zero if it is not known.
type version struct{ major, minor, patch int }

// String returns the version as ZooKeeper prints it.
func (v version) String() string { return fmt.Sprintf("ZooKeeper %d.%d.%d", v.major, v.minor, v.patch) }

func (v version) less(w version) bool {
	return cmp.Or(cmp.Compare(v.major, w.major), cmp.Compare(v.minor, w.minor), cmp.Compare(v.patch, w.patch)) < 0
}

// in reports whether a version is from one on and before another one.
func (v version) in(from, before version) bool { return !v.less(from) && v.less(before) }

// keeperVersion is the key in the reply of ClickHouse Keeper to srvr.
const keeperVersion = "clickhouse keeper version"

var numbers = regexp.MustCompile(`^(\d+)\.(\d+)\.(\d+)`)

// parseVersion parses what a server says of its version.
func parseVersion(text string) version {
	m := numbers.FindStringSubmatch(text)
	if m == nil {
		return version{}
	}
	var n [3]int
	for i := range n {
		n[i], _ = strconv.Atoi(m[i+1])
	}
	return version{n[0], n[1], n[2]}
}

// advisory is a known fault of some versions that concerns locks.
type advisory struct {
	id, text, advice string
	affects          func(version) bool
}

// newest names the releases that no advisory affects.
const newest = "upgrade to 3.8.7, 3.9.6 or newer"

// advisories are warnings: whether a fault has an effect depends on how the servers are used. Those of
// ZooKeeper's security page that concern neither locks nor the servers' data are not among them.
var advisories = []advisory{
	{
		id:      "ZOOKEEPER-4785",
		text:    "a server can lose transactions after restarts under load, and then grants locks by other data than the rest",
		advice:  newest + ", or set forceSnapshotSync=true in zoo.cfg of all servers, which doctor cannot see",
		affects: func(v version) bool { return v.less(version{3, 8, 4}) || v.in(version{3, 9, 0}, version{3, 9, 2}) },
	},
	{
		id:      "ZOOKEEPER-4925",
		text:    "a server can lose transactions after restarts under load, and then grants locks by other data than the rest",
		advice:  newest + ", or set forceSnapshotSync=true in zoo.cfg of all servers, which doctor cannot see",
		affects: func(v version) bool { return v == version{3, 9, 3} },
	},
	{
		id:     "CVE-2023-44981",
		text:   "with SASL between the servers, a machine without credentials can join the quorum, and grant locks",
		advice: newest + ", or keep other machines from the servers' quorum ports",
		affects: func(v version) bool {
			return v.less(version{3, 7, 2}) || v.in(version{3, 8, 0}, version{3, 8, 3}) || v == version{3, 9, 0}
		},
	},
	{
		id:     "CVE-2024-23944",
		text:   "watches report the names of znodes that the client may not read",
		advice: newest,
		affects: func(v version) bool {
			return v.in(version{3, 6, 0}, version{3, 8, 4}) || v.in(version{3, 9, 0}, version{3, 9, 2})
		},
	},
	{
		id:      "CVE-2024-51504",
		text:    "the admin server's check of addresses can be deceived; its commands can restore old data, and fencing tokens go back",
		advice:  newest + ", or turn the admin server off",
		affects: func(v version) bool { return v.in(version{3, 9, 0}, version{3, 9, 3}) },
	},
	{
		id:      "CVE-2025-58457",
		text:    "each client that the admin server authenticates can take a snapshot and restore old data, and fencing tokens go back",
		advice:  newest + ", or set admin.snapshot.enabled=false and admin.restore.enabled=false in zoo.cfg of all servers",
		affects: func(v version) bool { return v.in(version{3, 9, 0}, version{3, 9, 4}) },
	},
	{
		id:     "CVE-2026-24281",
		text:   "with TLS between the servers, a machine with a certificate that they trust and with a false reverse DNS entry passes for another one, can join the quorum, and grant locks",
		advice: newest + ", and set ssl.quorum.allowReverseDnsLookup=false in zoo.cfg of all servers",
		affects: func(v version) bool {
			return v.in(version{3, 8, 0}, version{3, 8, 6}) || v.in(version{3, 9, 0}, version{3, 9, 5})
		},
	},
	{
		id:      "CVE-2026-59739",
		text:    "watches that are set again after a reconnect report the names of znodes that the client may not read",
		advice:  newest,
		affects: before396,
	},
	{
		id:      "CVE-2026-59969",
		text:    "with TLS between the servers and fips-mode, the default of 3.9, a machine with a certificate that they trust passes for another one, can join the quorum, and grant locks",
		advice:  newest + ", or keep other machines from the servers' quorum ports",
		affects: before396,
	},
	{
		id:      "CVE-2026-79993",
		text:    "each client can delete znodes without children, whatever their access list is, such as a root that is not in use, and ledgers of package once, whose jobs then run again",
		advice:  newest + ", or let only machines that you trust connect to the servers",
		affects: before396,
	},
}

// before396 reports whether a version has the faults that 3.8.7 and 3.9.6 have mended.
func before396(v version) bool {
	return v.in(version{3, 8, 0}, version{3, 8, 7}) || v.in(version{3, 9, 0}, version{3, 9, 6})
}
