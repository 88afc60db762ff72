package middleware

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/zklock/go-zklock/zklock/fence"
)

// errBadSequencer means that a request's sequencers could not be parsed.
var errBadSequencer = errors.New("middleware: bad " + fence.Key + " header")

// WithSequencerCheck refuses, with 409, requests of former holders: those whose sequencer (see
// Transport) is older than the newest one that guard has seen. The check is made when a request
// arrives, and again when the request has acquired its own lock, if it needs one. Requests
// without a sequencer are not checked. By default no request is checked.
//
// trust reports whether the sender is trusted, and the origin of its tokens.
// Senders whose tokens come from the same ensemble and root have the same origin.
// The sequencers of a sender that is not trusted are ignored. A trusted sender can
// lock out all others of its origin by sending too great a token, by mistake or
// not. So trust must depend on the sender's identity, such as its client
// certificate, and not on what it sends.
//
// This is the sequencer check of Chubby. It refuses late requests of a holder that
// was paused, after a newer holder's request has arrived here. If each single write must be
// safe, see package fence.
//
// WithSequencerCheck panics if guard or trust is nil.
func WithSequencerCheck(guard *fence.Guard, trust func(*http.Request) (origin string, ok bool)) Option {
	if guard == nil || trust == nil {
		panic("middleware: WithSequencerCheck with a nil argument")
	}
	return optionFunc(func(c *config) { c.guard, c.trust = guard, trust })
}

// checkSequencers makes the check of WithSequencerCheck, if that is set.
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

// Transport is an http.RoundTripper that adds sequencers to requests: for each
// lock that the request's context carries and that is still held, a header
// (fence.Key) with its name, mode and fencing token. A server with
// WithSequencerCheck refuses requests whose sequencers are stale. Transport is safe
// for concurrent use if Base and To are.
//
//	client := &http.Client{Transport: &middleware.Transport{}}
//	req, err := http.NewRequestWithContext(r.Context(), ...) // r as the middleware passed it on
type Transport struct {
	// Base sends the requests. If it is nil, http.DefaultTransport does.
	Base http.RoundTripper

	// To chooses the requests that get the header, because lock names may reveal
	// too much to servers of others. If To is nil, all requests get it, except
	// those that a redirect sends to another host. The header is removed from the
	// other requests, even if the caller has set it: http.Client copies headers to
	// the request that follows a redirect.
	To func(*http.Request) bool
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip implements http.RoundTripper. It also sends the sequencers that the request already
// has, such as those of a request that is passed on. If the request's context carries a lock of the
// same name as such a sequencer, that sequencer is left out; see fence.AddValues. The receiver
// refuses the request if any sequencer is stale. It trusts them all as those of this process, so a
// proxy must delete the header fence.Key from requests of senders that it does not trust.
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
	r = r.Clone(r.Context()) // a RoundTripper must not change the caller's request
	r.Header.Del(fence.Key)
	for _, v := range values {
		r.Header.Add(fence.Key, v)
	}
	return base.RoundTrip(r)
}

// CloseIdleConnections closes the idle connections of Base, for the method of the
// same name of http.Client.
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
