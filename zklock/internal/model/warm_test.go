package model

import "testing"

func TestWarmContenderIsAlone(t *testing.T) {
	holdAll(t, []configuration[warmState]{
		{"one connection", WarmNames{Writes: 10, Others: 2}},
		{"a reconnect", WarmNames{Writes: 9, Others: 1, Reconnects: 1}},
	})
}

func TestWarmGuardsAreNeeded(t *testing.T) {
	for _, c := range []struct {
		name    string
		without WarmGuard
	}{
		{"the suffix follows", SuffixFollows},
		{"the watch on the znode", ParentWatched},
		{"the watch is checked last", CheckedLast},
		{"the watch is on the same znode", SameParentArmed},
		{"the watch is of this connection", WatchOfThisConn},
		{"gone before", GoneBefore},
		{"alone before", AloneBefore},
		{"events come before replies", EventBeforeReply},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			breaks(t, c.name, WarmNames{Writes: 12, Others: 1, Reconnects: 1, Without: c.without}, "counts as alone")
		})
	}
}
