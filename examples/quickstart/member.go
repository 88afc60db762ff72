package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// member is a replica as the story sees it: it takes orders, and can be killed or
// paused. Its methods are for one goroutine at a time.
type member struct {
	orders  io.WriteCloser
	answers chan string // closed when the replica has ended
	kill    func() error
	pause   func() (resume func() error, err error)
	end     func() // ends the replica if it still runs, and returns when it has ended
}

// ask gives an order and returns the answer.
func (m *member) ask(ctx context.Context, order string) (string, error) {
	if err := m.order(order); err != nil {
		return "", err
	}
	return m.answer(ctx)
}

func (m *member) order(order string) error {
	_, err := fmt.Fprintln(m.orders, order)
	return err
}

func (m *member) answer(ctx context.Context) (string, error) {
	select {
	case answer, ok := <-m.answers:
		if ctx.Err() != nil { // then a replica of this process fails too
			return "", context.Cause(ctx)
		}
		if !ok {
			return "", errors.New("a replica has ended unexpectedly")
		}
		if reason, bad := strings.CutPrefix(answer, failed); bad {
			return "", fmt.Errorf("a replica failed: %s", reason)
		}
		return answer, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// ready waits until the replica has its session, and ends it if it gets none.
func (m *member) ready(ctx context.Context) (*member, error) {
	if _, err := m.answer(ctx); err != nil {
		m.end()
		return nil, err
	}
	return m, nil
}

// read takes in the answers until there are no more.
func (m *member) read(from io.Reader) {
	defer close(m.answers)
	for lines := bufio.NewScanner(from); lines.Scan(); {
		m.answers <- lines.Text()
	}
}

// drain discards the answers of a replica that ends, until there are no more.
func (m *member) drain() {
	for range m.answers {
	}
}
