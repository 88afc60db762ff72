package main

import (
	"slices"

	"github.com/zklock/go-zklock/integration_test/maven"
)

// line is a series of releases that get fixes only.
type line struct {
	name string // such as 3.9

	// last is the last release of a line that has ended; "" for the newest release.
	last string

	// own are libraries that a server needs and its pom leaves out: those for metrics and
	// compression, and the one that prints the log. The versions are those of its parent.
	own []maven.Artifact
}

var (
	metrics = maven.Artifact{Group: "io.dropwizard.metrics", Name: "metrics-core"}
	snappy  = maven.Artifact{Group: "org.xerial.snappy", Name: "snappy-java"}
	logback = maven.Artifact{Group: "ch.qos.logback", Name: "logback-classic"}
	bridge  = maven.Artifact{Group: "org.slf4j", Name: "slf4j-reload4j"}
	log4j   = maven.Artifact{Group: "ch.qos.reload4j", Name: "reload4j"}
)

// lines are the release lines, from the oldest to the newest.
var lines = []line{
	{"3.5", "3.5.10", []maven.Artifact{bridge, log4j}},
	{"3.6", "3.6.4", []maven.Artifact{metrics, snappy, bridge, log4j}},
	{"3.7", "3.7.2", []maven.Artifact{metrics, snappy, bridge, log4j}},
	{"3.8", "", []maven.Artifact{metrics, snappy, logback}},
	{"3.9", "", []maven.Artifact{metrics, snappy, logback}},
	{"3.10", "", []maven.Artifact{metrics, snappy, logback}},
}

// steady is the newest line that is known to be released. A rotation always includes it.
const steady = "3.9"

// rotated returns the steady line and one other, which depends on the day, the older one first.
func rotated(day int) []line {
	at := slices.IndexFunc(lines, func(l line) bool { return l.name == steady })
	other := day % (len(lines) - 1)
	if other >= at {
		return []line{lines[at], lines[other+1]}
	}
	return []line{lines[other], lines[at]}
}

// position returns the index of a line in lines.
func position(l line) int {
	return slices.IndexFunc(lines, func(other line) bool { return other.name == l.name })
}

// released reports whether the line is known to have releases. If Maven finds none, it could not
// look.
func (l line) released() bool {
	return position(l) <= slices.IndexFunc(lines, func(l line) bool { return l.name == steady })
}

// String returns what the line stands for.
func (l line) String() string {
	if l.last != "" {
		return l.last
	}
	return "the newest " + l.name
}
