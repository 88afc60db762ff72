package middleware

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/zklock/go-zklock/zklock/fence"
)

// errBadSequencer means that a request's sequencers could not be read.
var errBadSequencer = errors.New("middleware: bad " + fence.Key + " header")

// WithSequencerCheck refuses requests, with 409, that were sent on behalf of a
// lock which has passed on: those whose sequencer (see Transport) is older than
// the newest one that guard has seen. It is checked when a request arrives and
// again when the request's own lock, if it takes one, is held. Requests without
// a sequencer are not checked. Off by default.
//
// trust says whether the sender's word counts, and from where its tokens are:
// senders whose tokens come from one ensemble and root have one origin. The
// sequencers of others are ignored. A sender that is trusted can lock out all
// others of its origin, by mistake or not, with a great token: so trust must be
// founded on who the sender is, on a client certificate for instance, and not
// on what it says.
//
// This is the sequencer check of Chubby. It keeps out the late requests of a
// holder that was stopped, once a newer holder's request has been seen here;
// where each single write has to be safe, see package fence.
//
// WithSequencerCheck panics if guard or trust is nil.
func WithSequencerCheck(guard *fence.Guard, trust func(*http.Request) (origin string, ok bool)) Option {
	if guard == nil || trust == nil {
		panic("middleware: WithSequencerCheck with a nil argument")
	}
	return optionFunc(func(c *config) { c.guard, c.trust = guard, trust })
}

// checkSequencers is the check of WithSequencerCheck, if there is one.
func (c *config) checkSequencers(r *http.Request) error {
	if c.guard == nil {
		return nil
	}
	values := r.Header.Values(fence.Key)
	if len(values) == 0 {
		return nil
	}
	origin, ok := c.trust(r)
	if !ok {
		return nil
	}
	seqs, err := fence.ParseValues(values, origin)
	if err != nil {
		return fmt.Errorf("%w: %w", errBadSequencer, err)
	}
	return c.guard.Check(seqs)
}

// Transport is an http.RoundTripper that sends along on whose behalf a request
// is made: for each lock that the request's context carries and that is still
// held, a header with its name, mode and fencing token (fence.Key). The other
// side refuses stale ones if it has WithSequencerCheck.
//
//	client := &http.Client{Transport: &middleware.Transport{}}
//	req, err := http.NewRequestWithContext(r.Context(), ...) // r as the middleware passed it on
type Transport struct {
	// Base makes the requests; http.DefaultTransport if nil.
	Base http.RoundTripper

	// To chooses the requests that have the header: lock names may tell
	// outsiders more than they should know. If it is nil, all do, but for those
	// that a redirect sends to another host. The others lose it, also if the
	// caller has set it: http.Client copies it from a request to where a redirect
	// leads.
	To func(*http.Request) bool
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip implements http.RoundTripper. Sequencers that are in the request
// already, of a call that is passed on for instance, are sent along with those of
// the request's own locks, but for those with the name of an own lock, see
// fence.AddValues. The receiver refuses the request if any of them is stale. It takes them for the word of this process: a proxy deletes fence.Key from
// requests of senders that it does not trust.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	to := t.To
	if to == nil {
		to = sameHost
	}
	passedOn := r.Header.Values(fence.Key)
	values := fence.AddValues(r.Context(), passedOn)
	if len(values) > 0 && !to(r) {
		values = nil
	}
	if slices.Equal(values, passedOn) {
		return base.RoundTrip(r)
	}
	r = r.Clone(r.Context()) // a RoundTripper must leave the caller's alone
	r.Header.Del(fence.Key)
	for _, v := range values {
		r.Header.Add(fence.Key, v)
	}
	return base.RoundTrip(r)
}

// CloseIdleConnections lets http.Client's method of that name reach Base.
func (t *Transport) CloseIdleConnections() {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	if c, ok := base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// sameHost reports whether all redirects that led to r stayed on one host.
func sameHost(r *http.Request) bool {
	for from := r; from.Response != nil && from.Response.Request != nil; {
		from = from.Response.Request
		if from.URL.Host != r.URL.Host {
			return false
		}
	}
	return true
}
