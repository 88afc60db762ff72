package fault_test

import (
	"slices"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
)

func TestScheduleRepeatsItself(t *testing.T) {
	seen := make(map[fault.Kind]int)
	longer := 0
	for seed := range uint64(50) {
		p := fault.Plan{Seed: seed, Kinds: fault.Kinds, For: time.Minute, TTL: time.Second, Clients: 3, Servers: 3}
		s := p.Schedule()
		if !slices.Equal(s, p.Schedule()) {
			t.Fatalf("seed %d has two schedules", seed)
		}
		total := time.Duration(0)
		for _, f := range s {
			seen[f.Kind]++
			total += f.After + f.Lasts
			if f.Victim < 0 || f.Victim > 2 || f.Lasts > 2*p.TTL || f.After <= 0 {
				t.Errorf("seed %d: %+v", seed, f)
			}
			if f.Lasts > p.TTL {
				longer++
			}
		}
		if total > p.For || len(s) < len(fault.Kinds) {
			t.Errorf("seed %d: %d faults that last %v, want more than %d in a minute", seed, len(s), total, len(fault.Kinds))
		}
		p.Seed++
		if slices.Equal(s, p.Schedule()) {
			t.Errorf("the seeds %d and %d have the same schedule", seed, p.Seed)
		}
	}
	for _, k := range fault.Kinds {
		if seen[k] < 50 {
			t.Errorf("%d faults of the kind %s in 50 schedules", seen[k], k)
		}
	}
	t.Logf("%v, %d of them longer than the TTL", seen, longer)
}

func TestScheduleWithoutServers(t *testing.T) {
	p := fault.Plan{Kinds: fault.Kinds, For: time.Minute, TTL: time.Second, Clients: 1}
	for _, f := range p.Schedule() {
		if f.Kind.OfServer() {
			t.Errorf("%v, and there are 0 servers", f)
		}
	}
	p.Kinds = []fault.Kind{fault.KillServer}
	if s := p.Schedule(); len(s) > 0 {
		t.Errorf("%v, want nothing", s)
	}
}
