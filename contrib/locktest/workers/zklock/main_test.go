package main

import (
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/worker"
)

// TestURL: keys of the environment are added to those of the worker, or replace them.
func TestURL(t *testing.T) {
	s := worker.Settings{Servers: []string{"127.0.0.1:1", "127.0.0.1:2"}, TTL: 4 * time.Second}
	for more, want := range map[string]string{
		"":                              "keep=2s&session_timeout=4s&tick_time=500ms",
		"tick_time=2s&session_dir=/a b": "keep=2s&session_dir=%2Fa+b&session_timeout=4s&tick_time=2s",
	} {
		if got, err := urlOf(s, modes["keep"], more); err != nil || got != "zk://127.0.0.1:1,127.0.0.1:2/locktest?"+want {
			t.Errorf("%s, %v, want the keys %s", got, err, want)
		}
	}
	if got, err := urlOf(s, modes["keep"], "%zz"); err == nil {
		t.Errorf("%s from a broken query", got)
	}
}
