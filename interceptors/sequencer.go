package interceptors

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/metadata"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// errBadSequencer means that a call's sequencers could not be read.
var errBadSequencer = errors.New("interceptors: bad " + fence.Key + " metadata")

// WithSequencerCheck makes a server refuse calls, with FailedPrecondition, that
// were made on behalf of a lock which has passed on: those whose sequencer (see
// WithSequencers) is older than the newest one that guard has seen. It is
// checked when a call arrives and again when the call's own lock, if it takes
// one, is held. Calls without a sequencer are not checked. Off by default, and
// of no effect on a client.
//
// trust says whether the caller's word counts, and from where its tokens are:
// callers whose tokens come from one ensemble and root have one origin. The
// sequencers of others are ignored. A caller that is trusted can lock out all
// others of its origin, by mistake or not, with a great token: so trust must be
// founded on who the caller is, on the certificate that package peer finds in
// ctx for instance, and not on what it says.
//
// WithSequencerCheck panics if guard or trust is nil.
func WithSequencerCheck(guard *fence.Guard, trust func(ctx context.Context, call Call) (origin string, ok bool)) Option {
	if guard == nil || trust == nil {
		panic("interceptors: WithSequencerCheck with a nil argument")
	}
	return optionFunc(func(c *config) { c.guard, c.trust = guard, trust })
}

// checkSequencers is the check of WithSequencerCheck, if there is one.
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
		return fmt.Errorf("%w: %w", errBadSequencer, err)
	}
	return c.guard.Check(seqs)
}

// WithSequencers makes a client send along on whose behalf a call is made: for
// each lock that the call's context carries and that is still held, the one
// that the interceptor took for the call among them, its name, mode and fencing
// token, as metadata under fence.Key. The other side refuses stale ones if it
// has WithSequencerCheck. Sequencers that are in the metadata already, of a call
// that is passed on for instance, are sent along with them, but for those with the
// name of one of them, see fence.AddValues. The receiver takes them for the word of this process, so pass on those of trusted callers only. Off
// by default, since lock names may tell outsiders more than they should know, and
// of no effect on a server.
//
// A client that only passes on what the context carries takes PassThrough for
// its Pick.
func WithSequencers() Option { return optionFunc(func(c *config) { c.sequencers = true }) }

// send puts the sequencers of the locks that ctx carries into the metadata.
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
