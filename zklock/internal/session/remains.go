package session

import (
	"context"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/hook"
)

// Remains sets a function that returns a delete for each ephemeral znode that places of the session have.
func (s *Session) Remains(f func() []*Write) { s.remains.Store(&f) }

// remaining returns the deletes of the ephemeral znodes of a session that is over, if they have so many
// bytes that its end is better a small transaction. It is called before places learn of the end.
func (s *Session) remaining() []*Write {
	if f := s.remains.Load(); f != nil && int(s.bytes.Load()) >= ephemerals(s.settings.maxBuffer())/16 {
		return (*f)()
	}
	return nil
}

// empty deletes the ephemeral znodes of a session that is about to be closed, in groups as other writes are.
// The transaction that ends the session then has the paths of the others only. If the ensemble does not
// answer, empty gives up: the session's end deletes what is left.
func (s *Session) empty(ctx context.Context, remains []*Write) {
	silent := false
	apart := committer{ctx: ctx, most: s.commits.most, multi: func(ctx context.Context, kind string, group int, ops []driver.Op) (results []driver.OpResult, err error) {
		if state, _ := s.ds.State(); silent || state != driver.Connected {
			return nil, driver.ErrNotSent
		}
		ctx, cancel := context.WithTimeout(ctx, s.requestTimeout())
		defer cancel()
		_, end := hook.Start(s.settings.Operation, ctx, Operation{Kind: kind, Group: group, Server: s.ds.Server(), Session: s.ds.ID()})
		results, err = s.ds.Multi(ctx, ops)
		end.Call(err)
		silent = err != nil && results == nil
		return results, err
	}}
	apart.Apart(remains)
}
