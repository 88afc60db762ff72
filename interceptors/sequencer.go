package interceptors

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/metadata"

	"github.com/zklock/go-zklock/internal/verdict"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// WithSequencerCheck makes a server refuse, with FailedPrecondition, calls of former holders:
// those whose sequencer (see WithSequencers) is older than the newest one that guard has seen.
// The check is made when a call arrives, and again when the call has acquired its own lock, if
// it needs one. Calls without a sequencer are not checked. By default no call is checked. The
// option has no effect on a client.
//
// trust reports whether the caller is trusted, and the origin of its tokens. Callers
// whose tokens come from the same ensemble and root have the same origin. The sequencers
// of a caller that is not trusted are ignored. A trusted caller can lock out all others
// of its origin by sending too great a token, by mistake or not. So trust must depend on
// the caller's identity, such as the certificate that package peer finds in ctx, and not
// on what the caller sends.
//
// WithSequencerCheck panics if guard or trust is nil.
func WithSequencerCheck(guard *fence.Guard, trust func(ctx context.Context, call Call) (origin string, ok bool)) Option {
	if guard == nil || trust == nil {
		panic("interceptors: WithSequencerCheck with a nil argument")
	}
	return optionFunc(func(c *config) { c.guard, c.trust = guard, trust })
}

// checkSequencers makes the check of WithSequencerCheck, if that is set.
func (c *config) checkSequencers(ctx context.Context, call Call) error {
	if c.guard == nil {
		return nil
	}
	values := metadata.ValueFromIncomingContext(ctx, fence.Key)
	if len(values) == 0 {
		return nil
	}
	origin, ok := c.trust(ctx, call)
	if !ok {
		return nil
	}
	seqs, err := fence.ParseValues(values, origin)
	if err != nil {
		return fmt.Errorf("interceptors: %w: %w", verdict.ErrBadSequencer, err)
	}
	return c.guard.Check(seqs)
}

// WithSequencers makes a client send sequencers with each call: for each lock that the
// call's context carries and that is still held, its name, mode and fencing token, as
// metadata with the key fence.Key. The lock that the interceptor has acquired for the
// call is one of them. A server with WithSequencerCheck refuses calls whose sequencers
// are stale.
//
// The client also sends the sequencers that the metadata already has, such as those of a call that
// is passed on. If the context carries a lock of the same name as such a sequencer, that sequencer
// is left out; see fence.AddValues. The receiver trusts them all as those of this process, so pass
// on only those of trusted callers.
//
// It is off by default, because lock names may reveal too much to servers of others. It
// has no effect on a server. A client that should send the sequencers of the context and
// acquire no locks uses PassThrough as its Pick.
func WithSequencers() Option { return optionFunc(func(c *config) { c.sequencers = true }) }

// send adds the sequencers of the locks that ctx carries to the metadata.
func (c *config) send(ctx context.Context) context.Context {
	if _, held := zklock.FromContext(ctx); !c.sequencers || !held {
		return ctx
	}
	md, ok := metadata.FromOutgoingContext(ctx) // a copy
	if !ok {
		md = make(metadata.MD, 1)
	}
	passedOn := md[fence.Key]
	values := fence.AddValues(ctx, passedOn)
	if slices.Equal(values, passedOn) {
		return ctx
	}
	md[fence.Key] = values
	return metadata.NewOutgoingContext(ctx, md)
}
