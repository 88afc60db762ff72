package drivertest_test

import (
	"context"
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
)

// refusing returns the set-up of a session that refuses a transaction with a container. The error
// is err. If err is driver.ErrBadArguments, the session refuses the transaction without sending it,
// so there are no results.
func refusing(err error) func(s *faulty) {
	return func(s *faulty) {
		s.multi = func(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
			at := slices.IndexFunc(ops, func(op driver.Op) bool { return op.Mode == driver.Container })
			switch {
			case at < 0:
				return s.Session.Multi(ctx, ops)
			case err == driver.ErrBadArguments:
				return nil, err
			}
			results := make([]driver.OpResult, len(ops))
			for i := range results {
				results[i].Err = driver.ErrRolledBack
			}
			results[at].Err = err
			return results, err
		}
	}
}

// containerFlaws returns the flaws that are about containers in transactions. A driver may
// refuse them, if it does so in the right way.
func containerFlaws() []flaw {
	return []flaw{
		{"containers in a multi are refused as malformed", with(refusing(driver.ErrBadArguments)), nil},
		{"containers in a multi are not implemented", with(refusing(driver.ErrUnimplemented)), nil},
		{"containers in a multi are refused with another error", with(refusing(driver.ErrInvalidACL)), []string{"multi/with a container is applied, or refused as a whole"}},
		{"a container in a multi is persistent", with(func(s *faulty) {
			s.multi = func(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
				ops = slices.Clone(ops)
				for i := range ops {
					if ops[i].Mode == driver.Container {
						ops[i].Mode = driver.Persistent
					}
				}
				return s.Session.Multi(ctx, ops)
			}
		}), []string{"container/that a transaction has created is removed in the same way"}},
		{"a container is created before its multi", with(func(s *faulty) {
			s.multi = func(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
				ops = slices.Clone(ops)
				for i, op := range ops {
					if op.Mode == driver.Container {
						if _, err := s.Session.Create(ctx, op.Path, op.Data, op.Mode, op.ACL); err == nil {
							ops[i] = driver.CheckOp(op.Path, driver.AnyVersion)
						}
					}
				}
				return s.Session.Multi(ctx, ops)
			}
		}), []string{
			"multi/results of containers have the path and the transaction's zxid",
			"multi/with a container that exists is ErrNodeExists and applies nothing",
			"multi/containers are rolled back",
		}},
	}
}
