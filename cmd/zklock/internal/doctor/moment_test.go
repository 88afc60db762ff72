package doctor

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// The servers are asked again if their quorum says something else: an election has ended in between.
func TestServersAndQuorumAreOfOneMoment(t *testing.T) {
	ensemble := func(errs ...error) (all []server) {
		for i, err := range errs {
			all = append(all, server{host: fmt.Sprint("zk", i), err: err})
		}
		return all
	}
	electing, elected, stopped := ensemble(errHangs, errWaits, errWaits), ensemble(errHangs, nil, nil), ensemble(errHangs, errRefused, errNotServing)
	refused := fmt.Errorf("%w: x", zklock.ErrNoAuth)
	for name, c := range map[string]struct {
		says  [][]server // to one question after the other
		pings []error
		asked int
		err   error
	}{
		"an election ends":            {[][]server{electing, elected}, []error{nil, nil}, 2, nil},
		"a leader is lost":            {[][]server{elected, electing}, []error{zklock.ErrUnavailable, zklock.ErrUnavailable}, 2, zklock.ErrUnavailable},
		"nothing changes":             {[][]server{elected}, []error{nil}, 1, nil},
		"rights are missing":          {[][]server{electing, elected}, []error{refused, refused}, 2, zklock.ErrNoAuth},
		"it changes all the time":     {[][]server{electing, electing, electing}, []error{nil, nil, nil}, 3, nil},
		"no server serves":            {[][]server{stopped}, nil, 1, errNoneServes},
		"none serves a little later":  {[][]server{electing, stopped}, []error{nil}, 2, errNoneServes},
		"the URL's scheme is another": {[][]server{ensemble(driver.ErrProtocol, driver.ErrProtocol)}, []error{driver.ErrProtocol}, 1, driver.ErrProtocol},
	} {
		asked, pinged := 0, 0
		servers, err := settle(func() []server { asked++; return c.says[asked-1] }, func() error { pinged++; return c.pings[pinged-1] })
		if asked != c.asked || !errors.Is(err, c.err) || &servers[0] != &c.says[asked-1][0] {
			t.Errorf("%s: asked %d times, %v, want %d, %v", name, asked, err, c.asked, c.err)
		}
	}
}

// Of the servers of two moments, doctor does not say how many can stop.
func TestQuorumOfTwoMomentsIsUnknown(t *testing.T) {
	for level, servers := range map[Level][]server{OK: {{}, {}, {err: errHangs}}, Unknown: {{err: errHangs}, {err: errWaits}, {err: errWaits}}} {
		var r Report
		r.quorum(t.Context(), Patient{}, servers, nil)
		if f := r.Findings[0]; f.What != "quorum" || f.Level != level {
			t.Errorf("%+v, want %s", f, level)
		}
	}
}
