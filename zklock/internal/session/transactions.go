package session

import (
	"context"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/hook"
)

// transactions is a session as its committer uses it.
type transactions struct{ *Session }

// multi runs one transaction, and lets a committed one prove the lease.
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

// settle takes over what transactions have created: the nodes' names, and the
// zxid and the counts of children where a parent was set. It does so for a whole
// group in one step, while those it is about still sleep.
func (s transactions) settle(group []*Write) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, w := range group {
		if w.Err == nil && w.Creates != nil {
			w.Children = w.Creates.SettleLocked(w)
		}
	}
}
