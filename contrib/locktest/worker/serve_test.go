package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/contrib/locktest/worker"
)

// script is a library whose acquisitions a test answers.
type script struct {
	grants chan *hold
}

func (s *script) Acquire(ctx context.Context, name string) (worker.Hold, error) {
	if name == "nested" {
		var tokens []string
		for _, h := range worker.Holding(ctx) {
			tokens = append(tokens, h.Token())
		}
		return nil, fmt.Errorf("the client holds %v", tokens)
	}
	if name == "refused" {
		return nil, errors.New("no such lock")
	}
	select {
	case h := <-s.grants:
		return h, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *script) Close() error { return nil }

type hold struct {
	token string
	lost  chan struct{}
	err   error
}

func (h *hold) Token() string         { return h.token }
func (h *hold) Lost() <-chan struct{} { return h.lost }
func (h *hold) Held() bool {
	select {
	case <-h.lost:
		return false
	default:
		return true
	}
}
func (h *hold) Release(context.Context) error { return h.err }

// conversation is a worker that serves a test.
type conversation struct {
	t      *testing.T
	script *script
	in     *io.PipeWriter
	out    *json.Decoder
	result chan error
}

func converse(t *testing.T) *conversation {
	in, writes := io.Pipe()
	reads, out := io.Pipe()
	c := &conversation{t, &script{grants: make(chan *hold, 1)}, writes, json.NewDecoder(reads), make(chan error, 1)}
	go func() {
		c.result <- worker.Serve(c.script, in, out)
		out.Close()
	}()
	c.hears(worker.Message{Op: worker.Ready})
	return c
}

func (c *conversation) says(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *conversation) hears(want worker.Message) {
	c.t.Helper()
	var got worker.Message
	if err := c.out.Decode(&got); err != nil {
		c.t.Fatal(err)
	}
	if got != want {
		c.t.Fatalf("the worker wrote %+v, want %+v", got, want)
	}
}

// TestServe has each line of the protocol, as its documentation writes it.
func TestServe(t *testing.T) {
	c := converse(t)
	first := &hold{token: "12", lost: make(chan struct{})}
	c.script.grants <- first
	c.says(`{"op":"acquire","id":7,"name":"a"}`)
	c.hears(worker.Message{Op: "granted", ID: 7, Name: "a", Token: "12"})
	c.script.grants <- &hold{token: "13"}
	c.says(`{"op":"acquire","id":4,"name":"b","holding":7}`)
	c.hears(worker.Message{Op: "granted", ID: 4, Name: "b", Token: "13"})
	c.says(`{"op":"acquire","id":5,"name":"nested","holding":4}`)
	c.hears(worker.Message{Op: "failed", ID: 5, Name: "nested", Reason: "the client holds [13 12]"})
	c.says(`{"op":"release","id":4,"name":"b"}`)
	c.hears(worker.Message{Op: "released", ID: 4, Name: "b"})
	c.says(`{"op":"acquire","id":6,"name":"nested","holding":4}`)
	c.hears(worker.Message{Op: "failed", ID: 6, Name: "nested", Reason: "the client holds []"})
	c.says(`{"op":"check","id":7,"name":"a"}`)
	c.hears(worker.Message{Op: "held", ID: 7, Name: "a"})
	close(first.lost)
	c.hears(worker.Message{Op: "lost", ID: 7, Name: "a"})
	c.says(`{"op":"check","id":7,"name":"a"}`)
	c.hears(worker.Message{Op: "lost", ID: 7, Name: "a"})
	c.says(`{"op":"release","id":7,"name":"a"}`)
	c.hears(worker.Message{Op: "released", ID: 7, Name: "a"})

	c.says(`{"op":"acquire","id":8,"name":"refused"}`)
	c.hears(worker.Message{Op: "failed", ID: 8, Name: "refused", Reason: "no such lock"})

	c.script.grants <- &hold{err: errors.New("no connection")}
	c.says(`{"op":"acquire","id":9,"name":"b"}`)
	c.hears(worker.Message{Op: "granted", ID: 9, Name: "b"})
	c.says(`{"op":"release","id":9,"name":"b"}`)
	c.hears(worker.Message{Op: "failed", ID: 9, Name: "b", Reason: "no connection"})
	c.in.Close()
	if err := <-c.result; err != nil {
		t.Error(err)
	}
}

// TestServeEndsWithItsInput: an acquisition that waits, and one that holds, do not keep a worker.
func TestServeEndsWithItsInput(t *testing.T) {
	c := converse(t)
	c.script.grants <- &hold{}
	c.says(`{"op":"acquire","id":1,"name":"a"}`)
	c.hears(worker.Message{Op: "granted", ID: 1, Name: "a"})
	c.says(`{"op":"acquire","id":2,"name":"a"}`)
	c.in.Close()
	c.hears(worker.Message{Op: "failed", ID: 2, Name: "a", Reason: "the end of the input"})
	if err := <-c.result; err != nil {
		t.Error(err)
	}
}

// TestServeRefusesWhatIsNoRequest: a mistake in the protocol ends the worker.
func TestServeRefusesWhatIsNoRequest(t *testing.T) {
	for line, want := range map[string]string{
		`{"op":"release","id":3,"name":"a"}`: "no such acquisition",
		`release a`:                          "read a request",
	} {
		c := converse(t)
		c.says(line)
		if err := <-c.result; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("after %s: %v, want an error with %q", line, err, want)
		}
	}
}
