package model

import (
	"math"
	"testing"
)

func TestPlacesAreHandedOverAndKept(t *testing.T) {
	holdAll(t, []configuration[placeState]{
		{"writers", Places{Processes: 3, Modes: writers, Limit: 2}, 692},
		{"readers and writers", Places{Processes: 2, Modes: both, Limit: 2}, 45756},
		{"kept places", Places{Processes: 3, Modes: writers, Keep: true, Limit: 1, Losses: 1, Shorts: 1}, 16140},
		{"kept places of readers and writers", Places{Processes: 2, Modes: both, Keep: true, Limit: 1, Losses: 1}, 134744},
		{"Txns in doubt, revocations", Places{Processes: 2, Modes: writers, Keep: true, Limit: 2, Txns: 1, Revokes: 1}, 5628},
		{"readers and revocations", Places{Processes: 2, Modes: both, Limit: 2, Revokes: 1}, 172180},
		{"the last turns", Places{Processes: 2, Modes: writers, Keep: true, Limit: 3, FirstTurn: math.MaxUint32 - 2}, 123},
	})
}

func TestPlaceGuardsAreNeeded(t *testing.T) {
	for _, c := range []struct {
		name, want string
		sys        Places
		without    PlaceGuard
	}{
		{"a reader's place is for readers", "next to a writer", Places{Processes: 2, Modes: both, Limit: 2}, ReadersPlace},
		{"a place in doubt is not handed over", "a Txn of an earlier holder", Places{Processes: 1, Modes: writers, Limit: 2, Txns: 1}, DoubtfulStays},
		{"a revoked place ends", "a revoked place", Places{Processes: 1, Modes: writers, Limit: 2, Revokes: 1}, RevokedEnds},
		{"a revoked place is not joined", "a revoked place", Places{Processes: 1, Modes: both, Limit: 2, Revokes: 1}, RevokedNotJoined},
		{"handover_limit", "more often", Places{Processes: 2, Modes: writers, Limit: 2}, LimitsCount},
		{"handover_time", "more often", Places{Processes: 1, Modes: writers, Limit: 0}, TimeCounts},
		{"turns end", "token", Places{Processes: 1, Modes: writers, Limit: 3, FirstTurn: math.MaxUint32 - 2}, TurnsEndOnce},
		{"a kept place is recalled", "is kept while", Places{Processes: 2, Modes: writers, Keep: true, Limit: 1}, KeptIsRecalled},
		{"the watch is armed by a list", "is kept while", Places{Processes: 2, Modes: writers, Keep: true, Limit: 1}, ArmingLists},
		{"a recalled place is not kept", "is kept while", Places{Processes: 2, Modes: writers, Keep: true, Limit: 1}, RecalledNotKept},
		{"a short lease is waited for", "could have the lock", Places{Processes: 1, Modes: writers, Limit: 1, Shorts: 1}, ShortIsResumed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.sys.Without = c.without
			breaks(t, c.sys, c.want)
		})
	}
}
