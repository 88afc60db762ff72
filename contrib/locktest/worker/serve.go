package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Serve reads requests from in, makes a library do them and writes the answers to out, until in ends.
// Then it closes the library and waits for its calls. It returns an error if a line has not the form
// of a request.
func Serve(library Library, in io.Reader, out io.Writer) error {
	ctx, end := context.WithCancelCause(context.Background())
	s := &server{library: library, out: json.NewEncoder(out), inboxes: make(map[int]chan string), holds: make(map[int]nested)}
	s.write(Message{Op: Ready})
	err := s.read(ctx, json.NewDecoder(in))
	end(errEnd)
	err = cmp.Or(err, library.Close())
	s.acquisitions.Wait()
	return err
}

// server serves the requests to one worker. Each acquisition has a goroutine, which makes all its
// calls of the library, and an inbox for the requests that follow the first one.
type server struct {
	library      Library
	acquisitions sync.WaitGroup

	writing sync.Mutex
	out     *json.Encoder // guarded by writing

	mu      sync.Mutex
	inboxes map[int]chan string // of the acquisitions that are not over, by id; guarded by mu
	holds   map[int]nested      // of those that were granted; guarded by mu
}

// nested is a hold, and the acquisition whose lock the client held while it waited for that.
type nested struct {
	Hold
	holding int
}

// waiting is how many requests an acquisition can have before it has answered: check and release.
const waiting = 4

func (s *server) read(ctx context.Context, in *json.Decoder) error {
	for {
		var m Message
		switch err := in.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read a request: %w", err)
		}
		if m.Op == Acquire {
			inbox := make(chan string, waiting)
			s.mu.Lock()
			s.inboxes[m.ID] = inbox
			s.mu.Unlock()
			s.acquisitions.Go(func() { s.acquire(ctx, m, inbox) })
			continue
		}
		s.mu.Lock()
		inbox := s.inboxes[m.ID]
		s.mu.Unlock()
		select {
		case inbox <- m.Op:
		default:
			return fmt.Errorf("request %s %d: there is no such acquisition, or it has not answered the requests before", m.Op, m.ID)
		}
	}
}

// within returns a context for an acquisition whose client holds a lock: see Holding.
func (s *server) within(ctx context.Context, id int) context.Context {
	if id == 0 {
		return ctx
	}
	var holds []Hold
	s.mu.Lock()
	defer s.mu.Unlock()
	for h, ok := s.holds[id]; ok; h, ok = s.holds[h.holding] {
		holds = append(holds, h.Hold)
	}
	return context.WithValue(ctx, holdingKey{}, holds)
}

// acquire is the life of an acquisition.
func (s *server) acquire(ctx context.Context, request Message, inbox <-chan string) {
	id, name := request.ID, request.Name
	answer := func(op string) { s.write(Message{Op: op, ID: id, Name: name}) }
	over := func(op string, err error) {
		s.mu.Lock()
		delete(s.inboxes, id)
		delete(s.holds, id)
		s.mu.Unlock()
		m := Message{Op: op, ID: id, Name: name}
		if err != nil {
			m.Op, m.Reason = Failed, err.Error()
		}
		s.write(m)
	}
	hold, err := s.library.Acquire(context.WithValue(s.within(ctx, request.Holding), requestKey{}, request), name)
	if err != nil {
		over(Failed, err)
		return
	}
	s.mu.Lock()
	s.holds[id] = nested{hold, request.Holding}
	s.mu.Unlock()
	s.write(Message{Op: Granted, ID: id, Name: name, Token: hold.Token()})
	for lost := hold.Lost(); ; {
		select {
		case op := <-inbox:
			switch {
			case op == Release:
				over(Released, hold.Release(ctx))
				return
			case hold.Held():
				answer(Held)
			default:
				answer(Lost)
			}
		case <-lost:
			answer(Lost)
			lost = nil
		case <-ctx.Done():
			return // locktest has gone, or has given up the worker
		}
	}
}

// write writes an answer. If that fails, locktest has gone, and the input ends as well.
func (s *server) write(m Message) {
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.out.Encode(m)
}
