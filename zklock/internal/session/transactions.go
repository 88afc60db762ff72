package session

import (
	"context"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/hook"
)

// transactions has the methods of a session that its committer calls.
type transactions struct{ *Session }

// multi runs one transaction. If it was committed, it proves the lease.
func (s transactions) multi(ctx context.Context, kind string, group int, ops []driver.Op) ([]driver.OpResult, error) {
	_, end := hook.Start(s.settings.Operation, ctx, Operation{Kind: kind, Group: group, Server: s.DS.Server(), Session: s.DS.ID()})
	gen, sent := s.BeforeExchange()
	results, err := s.DS.Multi(s.deadline.context(s.Ctx, s.requestTimeout()), ops)
	if err == nil {
		s.Exchanged(gen, sent, true)
	}
	end.Call(err)
	return results, err
}

// settle records what a group's transactions have created: the nodes' names, and the zxid
// and the counts of children where a parent was set. It does so for the whole group in one
// step, before the goroutines that wait for these writes are woken.
func (s transactions) settle(group []*Write) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, w := range group {
		if w.Err == nil && w.Creates != nil {
			w.Children = w.Creates.SettleLocked(w)
		}
	}
}
