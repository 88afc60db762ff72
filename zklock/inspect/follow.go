package inspect

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"time"

	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
)

const (
	// listEvery is the time from the end of one reading of the list to the next, at least.
	listEvery = 2 * time.Second

	// acrossEvery is the same for the page of a name, which shows the other names for its tree.
	acrossEvery = 10 * time.Second

	// listShare limits which part of the time is spent on reading the list: one in so many.
	listShare = 4
)

// view is what pages show of the ensemble: a list, or one name. Pages with the same view share a
// feed.
type view struct {
	name   string // "" for a list
	prefix string // of a list
}

// state is what a feed knows at a moment.
type state struct {
	number int // of the state in its feed, from 1 on; 0 before the first
	at     time.Time
	list   list           // of a list; for a name, all names; with the deadlocks
	lock   operator.Lock  // of a name
	here   map[string]int // by name, how many acquisitions of this process wait
	unsent int            // how many writes of this process wait to be sent
	fault  string         // why this process acquires nothing; "" if it does
	err    error          // why the ensemble did not answer; list and lock are those of the last answer
}

// blank reports whether the ensemble has never answered the feed, so that there is nothing to show.
func (s state) blank() bool {
	return unanswered(s.err) != nil && s.list.Locks == nil && s.lock.Name == ""
}

// load reads the state of a view once.
func (i *inspector) load(ctx context.Context, v view) state {
	s := state{at: time.Now(), here: i.here(), unsent: i.unsent()}
	if v.name != "" {
		if s.lock, s.err = i.one(ctx, v.name); s.err != nil {
			return s
		}
	}
	s.list, _, s.err = i.readAll(ctx, v.prefix)
	s.fault = i.fault()
	return s
}

// here returns how many acquisitions of this process wait, by name.
func (i *inspector) here() map[string]int { return i.client.Waiting() }

// unsent returns how many writes of this process wait to be sent.
func (i *inspector) unsent() int { return i.client.Stats().Backlog }

// follow publishes the states of a view until ctx ends.
func (i *inspector) follow(ctx context.Context, v view, publish func(state)) {
	if v.name == "" {
		i.followList(ctx, v.prefix, listEvery, func(l list, err error) {
			publish(state{at: time.Now(), list: l, here: i.here(), unsent: i.unsent(), fault: i.fault(), err: err})
		})
		return
	}
	i.followName(ctx, v.name, publish)
}

// followName publishes the queue of a name with all other names. An error that ends a Watch may
// go, as that of missing rights does: then it begins again after a pause. It returns after an error
// that stays.
func (i *inspector) followName(ctx context.Context, name string, publish func(state)) {
	ctx, cancel := context.WithCancel(ctx)
	lists, read := make(chan list), make(chan struct{})
	defer func() { cancel(); <-read }()
	go func() {
		defer close(read)
		i.followList(ctx, "", acrossEvery, func(l list, err error) {
			if err != nil {
				return // the queue's own error is shown
			}
			select {
			case lists <- l:
			case <-ctx.Done():
			}
		})
	}()
	queues, watched := make(chan state), make(chan struct{})
	defer func() { cancel(); <-watched }()
	go func() {
		defer close(watched)
		i.watchName(ctx, name, func(s state) {
			select {
			case queues <- s:
			case <-ctx.Done():
			}
		})
	}()
	var last state
	for known := false; ; {
		select {
		case s := <-queues:
			s.list, known = last.list, true
			last = s
		case last.list = <-lists:
			if !known {
				continue // the first state has the queue
			}
		case <-watched:
			<-ctx.Done()
			return
		}
		last.at, last.here, last.unsent, last.fault = time.Now(), i.here(), i.unsent(), i.fault()
		publish(last)
	}
}

// watchName calls show with the queue of a name, or why it is not known.
func (i *inspector) watchName(ctx context.Context, name string, show func(state)) {
	path := i.client.Mutex(name).Path()
	for {
		var ended error
		for queue, err := range i.client.Watch(ctx, name) {
			if ctx.Err() != nil {
				return
			}
			var s state
			if err == nil || isRootMissing(err) {
				s.lock = operator.Show(name, path, queue, &i.holds)
			} else {
				s.err = err
			}
			if ended = err; unanswered(err) == nil {
				i.pulse.answer()
			} else {
				i.pulse.fail()
			}
			show(s)
		}
		if errors.Is(ended, zklock.ErrInvalidName) || errors.Is(ended, zklock.ErrClosed) || !wait(ctx, listEvery) {
			return
		}
	}
}

// wait waits for some time. It reports false if ctx has ended.
func wait(ctx context.Context, d time.Duration) bool {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// followList calls show with the list and the deadlocks, again and again until ctx ends.
func (i *inspector) followList(ctx context.Context, prefix string, every time.Duration, show func(list, error)) {
	for {
		l, took, err := i.readAll(ctx, prefix)
		if ctx.Err() != nil {
			return
		}
		show(l, err)
		if !wait(ctx, max(every, (listShare-1)*took)) {
			return
		}
	}
}

// equals reports whether two states look the same.
func (s state) equals(other state) bool {
	if s.err != nil || other.err != nil {
		return s.err != nil && other.err != nil && s.err.Error() == other.err.Error()
	}
	return s.unsent == other.unsent && s.fault == other.fault && maps.Equal(s.here, other.here) && reflect.DeepEqual(s.list, other.list) && reflect.DeepEqual(s.lock, other.lock)
}
