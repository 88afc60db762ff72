package locktest

import (
	"context"
	"testing"

	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/worker"
)

// answered is a process that a test answers for, with one acquisition under way.
func answered(t *testing.T) (p *process, b *box, answer func(op string)) {
	const id = 7
	p = &process{history: history.NewRecorder(), ready: make(chan struct{}), boxes: make(map[int]*box)}
	return p, p.open(id, "a"), func(op string) {
		t.Helper()
		if err := p.answer(worker.Message{Op: op, ID: id, Name: "a"}); err != nil {
			t.Fatalf("the answer %q: %v", op, err)
		}
	}
}

// TestLossesThatAreRead: losses that a client has not read yet are one answer. After it has read that, it gets the answer to
// another check.
func TestLossesThatAreRead(t *testing.T) {
	p, b, answer := answered(t)
	now, cancel := context.WithCancel(t.Context())
	cancel()
	reads := func(want string) {
		t.Helper()
		if m, _ := p.await(now, b); m.Op != want {
			t.Errorf("the client reads %q, want %q", m.Op, want)
		}
	}
	for range 2 * unread {
		answer(worker.Lost)
	}
	reads("")
	answer(worker.Granted)
	reads(worker.Granted)
	for range 2 {
		for range 2 * unread {
			answer(worker.Lost)
		}
		reads(worker.Lost)
		reads("")
	}
	var kinds []history.Kind
	for _, e := range p.history.Events() {
		kinds = append(kinds, e.Kind)
	}
	if len(kinds) != 2 || kinds[0] != history.Granted || kinds[1] != history.Lost {
		t.Errorf("the history has %q, want a grant and a loss", kinds)
	}
}

// TestGrantAfterItsClientHasGone: a client gives up an acquisition that has no answer yet. The grant that comes then breaks
// no rule, and is not in the history. A grant of an acquisition that is over is a mistake.
func TestGrantAfterItsClientHasGone(t *testing.T) {
	p, _, answer := answered(t)
	p.giveUp(7)
	answer(worker.Granted)
	if events := p.history.Events(); len(events) > 0 {
		t.Errorf("the history has %+v, want nothing", events)
	}
	p.close(7)
	if err := p.answer(worker.Message{Op: worker.Granted, ID: 7}); err == nil {
		t.Error("an acquisition that is over was granted without an error")
	}
}

// TestLossWithoutAGrant: a loss of what was not granted is the end of no hold, so the history does not have it.
func TestLossWithoutAGrant(t *testing.T) {
	p, _, answer := answered(t)
	answer(worker.Lost)
	answer(worker.Failed)
	if events := p.history.Events(); len(events) != 1 || events[0].Kind != history.Failed {
		t.Errorf("the history has %+v, want a failure only", events)
	}
}
