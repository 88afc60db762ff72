package simulation

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/control"
)

// process is one client of the library, with what the simulation knows about it.
type process struct {
	w       *world
	index   int
	client  *zklock.Client
	back    atomic.Bool  // its client has found that tokens went back
	session atomic.Int64 // the session that its Session hook reported last as connected
	sought  atomic.Int64 // in runs with max_contenders, when it last looked for nodes after a lost reply, since the start
	last    string       // the fault that struck it last
	closing sync.WaitGroup
}

// reopen gives the process a new client, as after a restart.
func (p *process) reopen(t *testing.T) {
	w := p.w
	cfg := zklock.Config{
		Connector:      faultcontrol.Control(w.connector(), p.decide),
		SessionTimeout: simTimeout, TickTime: simClient, ConnectTimeout: simConnect,
		PoolMaxSessions: w.p.pool, PoolMaxLifetime: w.p.lifetime,
		HandoverTime: cmp.Or(w.p.handover, -1), Dialect: w.p.dialect, Keep: w.p.keep,
		MaxContenders: w.p.limit,
	}
	hooks := zklock.Hooks{
		Session: func(e zklock.SessionEvent) {
			if e.State == driver.Connected {
				p.session.Store(e.ID)
			}
			w.judgeSession(e)
		},
		Release: func(ctx context.Context, e zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
			return ctx, func(r zklock.ReleaseResult) {
				if r.Handed && p.client.Stats().Kept > 0 {
					w.tally.kept++
				}
			}
		},
		Lost: func(ctx context.Context, e zklock.LostEvent) {
			w.model.lost(ctx, e)
			if w.p.dawdling {
				time.Sleep(dawdle)
			}
		},
	}
	if w.p.limit > 0 {
		hooks.Operation = p.operation
	}
	c, err := zklock.OpenConfig(cfg, zklock.WithHooks(hooks), control.WithJitter[zklock.Option](w.jitter), control.WithKeepAfter[zklock.Option](0))
	if err != nil {
		t.Fatal(err)
	}
	p.client = c
}

// operation is the Operation hook in runs with max_contenders.
func (p *process) operation(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
	if e.Kind == "recover" {
		p.sought.Store(int64(time.Since(p.w.began)))
	}
	return ctx, nil
}

// dawdle is how long a Lost hook takes, in runs with slow hooks.
const dawdle = usualTimeout / 4
