package session

import (
	"context"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/hook"
)

// multi runs one transaction of the committer. If it was committed, it proves the lease.
func (s *Session) multi(ctx context.Context, kind string, group int, ops []driver.Op) ([]driver.OpResult, error) {
	_, end := hook.Start(s.settings.Operation, ctx, Operation{Kind: kind, Group: group, Server: s.DS.Server(), Session: s.DS.ID()})
	gen, sent := s.BeforeExchange()
	results, err := s.DS.Multi(s.deadline.context(s.Ctx, s.requestTimeout()), ops)
	if err == nil {
		s.Exchanged(gen, sent, true)
	}
	end.Call(err)
	return results, err
}
