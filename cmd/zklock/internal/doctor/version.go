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

// advisories are warnings: whether a fault has an effect depends on how the servers are used.
var advisories = []advisory{
	{
		id:      "ZOOKEEPER-4785",
		text:    "a server can lose transactions after restarts under load, and then grants locks by other data than the rest",
		advice:  "upgrade to 3.8.4, 3.9.2 or newer, but not to 3.9.3, or set forceSnapshotSync=true in zoo.cfg of all servers",
		affects: func(v version) bool { return v.less(version{3, 8, 4}) || v.in(version{3, 9, 0}, version{3, 9, 2}) },
	},
	{
		id:      "ZOOKEEPER-4925",
		text:    "a server can lose transactions after restarts under load, and then grants locks by other data than the rest",
		advice:  "upgrade to 3.9.4 or newer, or set forceSnapshotSync=true in zoo.cfg of all servers",
		affects: func(v version) bool { return v == version{3, 9, 3} },
	},
	{
		id:     "CVE-2023-44981",
		text:   "with SASL between the servers, a machine without credentials can join the quorum, and grant locks",
		advice: "upgrade to 3.7.2, 3.8.3, 3.9.1 or newer, or keep other machines from the servers' quorum ports",
		affects: func(v version) bool {
			return v.less(version{3, 7, 2}) || v.in(version{3, 8, 0}, version{3, 8, 3}) || v == version{3, 9, 0}
		},
	},
	{
		id:     "CVE-2024-23944",
		text:   "watches report the names of znodes that the client may not read",
		advice: "upgrade to 3.8.4, 3.9.2 or newer",
		affects: func(v version) bool {
			return v.in(version{3, 6, 0}, version{3, 8, 4}) || v.in(version{3, 9, 0}, version{3, 9, 2})
		},
	},
	{
		id:      "CVE-2024-51504",
		text:    "the admin server's check of addresses can be deceived; its commands can restore old data, and fencing tokens go back",
		advice:  "upgrade to 3.9.3 or newer, or turn the admin server off",
		affects: func(v version) bool { return v.in(version{3, 9, 0}, version{3, 9, 3}) },
	},
}
