package session

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// grow asks the servers whether they have the next larger limit, and returns when they have answered, or when the
// session is over: see room.go. All sessions of a pool share the question. An error means that ctx has ended. It is
// errs.ErrNoRoom if a caller has been patient for connect_timeout, and the session works: the question is under way.
//
// The session asks on its own account: of callers that leave soon, none would wait for the answer. more is how many bytes of
// znodes the caller adds.
func (s *Session) grow(ctx context.Context, more int) error {
	b := &s.common.bounds
	b.mu.Lock()
	asked, begin := b.asking, b.asking == nil
	if begin {
		asked = make(chan struct{})
		b.asking = asked
	}
	b.mu.Unlock()
	if begin {
		ask := func() {
			probe := s.ask(b.limitFor(int(s.bytes.Load())+more, s.settings))
			b.mu.Lock()
			b.asking = nil
			b.mu.Unlock()
			close(asked)
			if probe != nil {
				ctx, cancel := context.WithTimeout(s.ctx, time.Second)
				defer cancel()
				_ = probe.Close(ctx) // it has no znodes; if this fails, it expires
			}
		}
		if !s.Spawn(ask) {
			ask() // the session is over, and sends nothing
		}
	}
	select {
	case <-asked:
		return nil
	case <-ctx.Done():
		impatient := context.Cause(ctx) == errs.ErrNoSession || context.Cause(ctx) == errs.ErrCut
		switch {
		case impatient && time.Since(s.UsableAt()) < s.settings.ConnectTimeout*9/10:
			return errs.ErrNoRoom
		case !impatient && s.CutSince().IsZero():
			return errs.WaitEnded(ctx, errs.ErrNotAcquired)
		}
		return s.common.Outage(ctx)
	}
}

// ask reads a znode that does not exist, and whose path is so long that servers with a lower limit cut the connection.
// It goes on until it has the answer, or the session is over. The answer is noted in bounds.
//
// Each cut costs all callers of the session their connection, and a few of them may cost it the lease on an ensemble
// that is slow. So a question that was cut once goes on over a connection that carries nothing else, and so do
// questions of servers that have cut others. ask returns that connection; nil if it needed none.
func (s *requests) ask(limit int) (probe driver.Session) {
	b, size := &s.common.bounds, askWith(limit)
	const header = 13 // of the request of a read, without the path
	path := s.settings.Root + "/" + strings.Repeat("x", max(size-header-len(s.settings.Root)-1, 1))
	alone, apart, epoch := b.lone.Load() > 0, proof{}, uint64(0)
	err := s.Repeat(s.ctx, "verify", func(ctx context.Context, ds driver.Session) (err error) {
		b.mu.Lock()
		epoch = b.epoch
		b.mu.Unlock()
		if err = b.refuses(size, s.settings); err != nil {
			return err
		}
		p := &s.sizes
		if alone && probe == nil {
			probe, _ = s.common.connector.Connect(ctx, s.settings.SessionTimeout)
		}
		if probe != nil { // else the servers have room for no further connection, perhaps
			ds, p = probe, &apart
		}
		gen, _ := ds.Conn()
		_, err = ds.Get(ctx, path)
		b.note(p, gen, 1, size, err)
		switch {
		case errors.Is(err, driver.ErrNoNode):
			return nil
		case probe != nil && errors.Is(err, driver.ErrSessionExpired):
			probe = nil
			return driver.ErrConnLoss
		case errors.Is(err, driver.ErrConnLoss) && probe == nil:
			s.sizes.mu.Lock()
			apart.cut, apart.cuts = s.sizes.cut, s.sizes.cuts
			s.sizes.mu.Unlock()
			alone = true
		}
		return err
	})
	if errors.Is(err, errs.ErrSessionOver) || errors.Is(err, errTooLarge) {
		return probe
	}
	// Any other error is an answer, too, or the driver sends no request of that size, and the settings are trusted.
	b.prove(limit, epoch)
	return probe
}
