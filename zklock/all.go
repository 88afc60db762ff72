package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// maxAll bounds how many names one transaction takes a place on.
const maxAll = 128

// All returns several mutexes, readers and writers as one lock: acquired
// together, with one token, one deadline and one round trip, or not at all. A
// name that is given twice is taken once, in the stronger mode.
//
// All places are taken by one transaction, so two requests that share names have
// the same order on all of them, and never wait for each other in a circle,
// whatever order the names are given in. While it waits for one name it has its
// place on the others. It takes no part in hand-over inside the process.
//
// All of one name is that name's own lock, with all that this can do: it is handed
// over inside the process, and as a writer's it can be downgraded.
//
// At most 128 names, all of one Client; no semaphores and no other All: else
// acquiring it is ErrConflict.
func All(a ...Acquirer) Acquirer {
	all := &all{}
	all.err = all.add(a)
	slices.SortFunc(all.wants, func(a, b place.Want) int { return strings.Compare(a.Name, b.Name) })
	return all
}

type all struct {
	client *Client
	wants  []place.Want // sorted by name, no name twice
	err    error
}

var _ Acquirer = (*all)(nil)

func (l *all) add(acquirers []Acquirer) error {
	if len(acquirers) == 0 {
		return errs.Case(errs.ErrConflict, "All of no locks: it takes one or more")
	}
	// Of a client, whatever else is wrong: its hooks are called.
	for _, a := range acquirers {
		if l.client == nil {
			l.client = clientOf(a)
		}
	}
	at := make(map[string]int)
	for _, a := range acquirers {
		var d *described
		switch a := a.(type) {
		case *Mutex:
			d = a.described()
		case *Reader:
			d = a.described()
		case nil:
			return errAllOfNil
		default:
			return errs.Case(errs.ErrConflict, fmt.Sprintf("All takes mutexes, readers and writers, not %T", a))
		}
		if err := d.check(); err != nil {
			if errors.Is(err, errNilAcquirer) {
				err = errAllOfNil
			}
			return err
		}
		if d.client != l.client {
			return errs.Case(errs.ErrConflict, fmt.Sprintf("All takes locks of one Client, %q is another's", d.name()))
		}
		w := d.wants[0]
		i, twice := at[w.Path]
		switch {
		case !twice:
			at[w.Path] = len(l.wants)
			l.wants = append(l.wants, w)
		case w.Kind.Mode == queue.Exclusive:
			l.wants[i].Kind = w.Kind
		}
	}
	if len(l.wants) > maxAll {
		return errs.Case(errs.ErrConflict, fmt.Sprintf("All of %d names, at most %d can be taken together", len(l.wants), maxAll))
	}
	return nil
}

// clientOf returns the client that an Acquirer is of, nil if there is none.
func clientOf(a Acquirer) *Client {
	switch a := a.(type) {
	case interface{ described() *described }:
		return a.described().knownClient()
	case *all:
		return a.client
	}
	return nil
}

// Name returns the names, sorted and joined by commas.
func (l *all) Name() string {
	names := make([]string, len(l.wants))
	for i, w := range l.wants {
		names[i] = w.Name
	}
	return strings.Join(names, ",")
}

// Acquire implements Acquirer.
func (l *all) Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return l.acquire(ctx, opts, false)
}

// TryAcquire implements Acquirer.
func (l *all) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return l.acquire(ctx, opts, true)
}

func (l *all) acquire(ctx context.Context, opts []AcquireOption, try bool) (*Lock, error) {
	mode := queue.Shared
	for _, w := range l.wants {
		if w.Kind.Mode == queue.Exclusive {
			mode = queue.Exclusive
		}
	}
	if len(l.wants) == 0 {
		mode = queue.Exclusive
	}
	if l.err != nil {
		return nil, l.client.refused(ctx, l.Name(), mode, newAcquireConfig(opts, try), l.err)
	}
	return l.client.acquire(ctx, l.Name(), mode, l.wants, newAcquireConfig(opts, try))
}
