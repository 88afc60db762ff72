package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/zklock/go-zklock/zklock"
)

func TestRunEndsWithASummary(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"-url", "mem://" + t.Name()}, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"zklock on mem://", "at most 1 call at once", "served by north", "served by south", "180 of 180 items", "Aborted, LOCK_CONTENDED"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, &out)
		}
	}
}

func TestRunFailsWithoutLocks(t *testing.T) {
	unlocked := func(*zklock.Client) []grpc.ServerOption { return nil }
	ctx := t.Context()
	var books books
	servers := make([]*server, 2)
	for i := range servers {
		s, err := start(ctx, "mem://", "127.0.0.1:0", fmt.Sprint(i), &books, unlocked)
		if err != nil {
			t.Fatal(err)
		}
		defer s.stop()
		servers[i] = s
	}
	calls, err := callAll(ctx, servers)
	if err != nil {
		t.Fatal(err)
	}
	err = books.summary(io.Discard, calls)
	for _, want := range []string{"exclusion is broken", "no fencing token", "updates were lost"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}

func TestRunRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, args := range [][]string{{"-nonsense"}, {"argument"}, {"-url", "nonsense://"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("arguments %q were accepted", args)
		}
	}
}
