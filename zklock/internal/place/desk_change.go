package place

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// change is what ended a waiter's sleep.
type change int

const (
	timeToLook     change = iota // it is time to read again; no change is known
	somethingFired               // a watch fired, which proves nothing
	aheadGone                    // the first of the watched nodes ahead was certainly deleted
)

// awaitChange waits until one of the watched nodes ahead, or one of our own nodes,
// changes, or until it is time to read them again.
//
// A watch may not survive a new connection, so the caller then reads the nodes again.
// It does so after a pause, with jitter, of up to a sixth of the session timeout: many
// clients may have reconnected at the same time. Most watches do survive, and report at
// once what they have missed. So awaitChange listens to them during the pause: otherwise the
// whole queue would wait that long after every cut.
func (d *Desk) awaitChange(ctx context.Context, ahead, own []*session.Watched) (change, error) {
	all := append(slices.Clip(ahead), own...)
	armed := slices.MinFunc(all, func(a, b *session.Watched) int { return cmp.Compare(a.Gen, b.Gen) }).Gen
	for {
		gen, moved := d.Connection()
		survived := gen > armed
		var look time.Duration
		switch {
		case survived:
			look, moved = d.cfg.Jitter(d.Timeout/6), nil
		case own == nil:
			look = d.Timeout / 40 // shorter waits do without a watch on our own node, which costs a read
		}
		fired, late := awaitEvent(ctx, all, look, moved, d.Ctx.Done())
		switch {
		case fired != nil:
			d.Watches.Drop(fired)
			e := fired.Fires()
			now, _ := d.DS.Conn() // an event of an older connection proves nothing: the node is read again
			if fired == ahead[0] && !survived && e.Err == nil && e.Type == driver.EventDeleted && now == fired.Gen {
				return aheadGone, nil
			}
			return somethingFired, nil
		case ctx.Err() != nil || d.Ctx.Err() != nil:
			return 0, d.waitError(ctx)
		case late:
			return timeToLook, nil
		}
	}
}

// awaitEvent returns the first of ws to fire. It returns nil if ctx, moved or ends ends first, or
// if the time look passes first: only then late is true. A look of 0 never passes.
func awaitEvent(ctx context.Context, ws []*session.Watched, look time.Duration, moved, ends <-chan struct{}) (fired *session.Watched, late bool) {
	var timer <-chan time.Time
	if look > 0 {
		t := time.NewTimer(look)
		defer t.Stop()
		timer = t.C
	}
	var events [4]<-chan driver.Event // a select of them takes much less memory than reflect's
	if len(ws) > len(events) {
		return awaitOneOf(ctx, ws, timer, moved, ends)
	}
	for i, w := range ws {
		events[i] = w.Event
	}
	select {
	case e, ok := <-events[0]:
		ws[0].Received(e, ok)
		return ws[0], false
	case e, ok := <-events[1]:
		ws[1].Received(e, ok)
		return ws[1], false
	case e, ok := <-events[2]:
		ws[2].Received(e, ok)
		return ws[2], false
	case e, ok := <-events[3]:
		ws[3].Received(e, ok)
		return ws[3], false
	case <-timer:
		return nil, true
	case <-moved:
	case <-ends:
	case <-ctx.Done():
	}
	return nil, false
}

// awaitOneOf is awaitEvent for any number of watches.
func awaitOneOf(ctx context.Context, ws []*session.Watched, timer <-chan time.Time, moved, ends <-chan struct{}) (fired *session.Watched, late bool) {
	cases := make([]reflect.SelectCase, 0, len(ws)+4)
	for _, w := range ws {
		cases = append(cases, receive(w.Event))
	}
	i, value, ok := reflect.Select(append(cases, receive(timer), receive(moved), receive(ends), receive(ctx.Done())))
	if i >= len(ws) {
		return nil, i == len(ws)
	}
	e, _ := value.Interface().(driver.Event)
	ws[i].Received(e, ok)
	return ws[i], false
}

// receive returns the case of a select that receives from a channel.
func receive(ch any) reflect.SelectCase {
	return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ch)}
}

// waitError returns the error of a wait for another holder that ctx or the session's
// end has ended.
func (d *Desk) waitError(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return errs.ErrSessionOver
	case d.Silent():
		return errs.WaitEnded(ctx, errs.ErrUnavailable)
	}
	return errs.WaitEnded(ctx, errs.ErrNotAcquired)
}
