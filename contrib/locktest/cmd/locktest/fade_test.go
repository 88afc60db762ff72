package main

import (
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
)

// TestParseFade: the flag sets a lock for each process, which the others leave alone, and two cuts of all clients that outlast their sessions.
func TestParseFade(t *testing.T) {
	o, err := parse([]string{"-library", "zk", "-fade", "-ttl", "20s"})
	if c := o.config; err != nil || !c.Alone || c.Clients != 0 || c.Workers != fadeWorkers || len(c.Long) != fadeWorkers || len(c.Faults) != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	for i, delay := range []time.Duration{0, 1250 * time.Millisecond} {
		if f := o.config.Faults[i]; f.Kind != fault.FadeOut || f.Delay != delay || f.Lasts != 28*time.Second || f.After != 20*time.Second {
			t.Errorf("%+v", f)
		}
	}
	if o, err = parse([]string{"-library", "zk", "-fade", "-workers", "3"}); err != nil || len(o.config.Long) != 3 {
		t.Errorf("%+v, %v", o.config, err)
	}
}
