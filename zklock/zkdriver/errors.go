package zkdriver

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Error codes of the protocol that the client has no value for, or that this package looks for
// in frames.
const (
	codeRuntimeInconsistency = -2
	codeConnectionLoss       = -4
	codeUnimplemented        = -6
	codeOperationTimeout     = -7
	codeNoNode               = -101
	codeSessionExpired       = -112
	codeLocalSession         = -120
	codeRequestTimeout       = -122
	codeNeedsAuth            = -124
	codeQuotaExceeded        = -125
	codeThrottled            = -127
)

// codeOversized is ZooKeeper's code for errors of its own. In place of a reply that is too long,
// the client gets an answer with this code. The caller's error is made from send.oversized.
const codeOversized = 0xffffffff // -1

// serverErrors translates the client's values for a server's error answers. nil marks
// an answer that is definite but has no name in package driver.
var serverErrors = map[error]error{
	zk.ErrNoNode:                  driver.ErrNoNode,
	zk.ErrNodeExists:              driver.ErrNodeExists,
	zk.ErrNotEmpty:                driver.ErrNotEmpty,
	zk.ErrBadVersion:              driver.ErrBadVersion,
	zk.ErrNoChildrenForEphemerals: driver.ErrNoChildrenForEphemerals,
	zk.ErrNoAuth:                  driver.ErrNoAuth,
	zk.ErrAuthFailed:              driver.ErrAuthFailed,
	zk.ErrInvalidACL:              driver.ErrInvalidACL,
	zk.ErrBadArguments:            driver.ErrBadArguments,
	zk.ErrSessionExpired:          driver.ErrSessionExpired,
	zk.ErrAPIError:                nil,
	zk.ErrNothing:                 nil,
	zk.ErrReconfigDisabled:        nil,

	// The session moved to another server while this request was under way. The
	// request was refused, and requests before it may have been refused too. So the
	// caller must read the state again, as after a lost connection.
	zk.ErrSessionMoved: driver.ErrConnLoss,

	// Requests that the client refuses before it sends anything.
	zk.ErrInvalidPath:  driver.ErrBadArguments,
	zk.ErrInvalidFlags: driver.ErrBadArguments,
}

// codeErrors translates, as serverErrors does, the codes that the client has no value for. A code
// that is not listed here is definite, too.
var codeErrors = map[int]error{
	codeUnimplemented:    driver.ErrUnimplemented,
	codeConnectionLoss:   driver.ErrConnLoss,
	codeOperationTimeout: driver.ErrConnLoss,
	codeRequestTimeout:   driver.ErrConnLoss,
	codeLocalSession:     driver.ErrLocalSession,
	codeNeedsAuth:        errNeedsAuth,
	codeQuotaExceeded:    driver.ErrQuotaExceeded,
	codeThrottled:        driver.ErrThrottled,
}

// errNeedsAuth means that the servers demand an authentication that the session lacks, by
// sessionRequireClientSASLAuth or enforce.auth.enabled.
var errNeedsAuth error = &verdict{"the servers demand another authentication: SASL (key " + keySASL + "), a user in the URL for the scheme digest, or a client certificate (keys " + keyTLSCert + " and " + keyTLSKey + ") for the scheme x509", []error{driver.ErrAuthFailed}}

// errNoRight is a server's answer that a right is missing. The client's text for it, "not authenticated", is wrong for a
// session with an identity.
var errNoRight error = &verdict{driver.ErrNoAuth.Error(), []error{driver.ErrNoAuth, zk.ErrNoAuth}}

// errorCode parses the code out of the client's error for codes that it does not know: only the
// text has it.
func errorCode(err error) (code int, ok bool) {
	text, ok := strings.CutPrefix(err.Error(), "unknown error: ")
	if !ok {
		return 0, false
	}
	code, convErr := strconv.Atoi(text)
	return code, convErr == nil
}

// translate adds package driver's error, if there is one, to a server's answer. ok is
// false if err did not come from a server.
func translate(err error) (_ error, ok bool) {
	if err == zk.ErrNoAuth {
		return errNoRight, true
	}
	name, ok := serverErrors[err]
	if !ok {
		var code int
		if code, ok = errorCode(err); !ok {
			return err, false
		}
		name = codeErrors[code]
	}
	if name == nil {
		return err, true
	}
	return both(name, err), true
}

// outcome ends a request and returns its error, nil if it succeeded.
func (s *session) outcome(c call, q *send, err error) error {
	s.land(q)
	if err == nil {
		return nil
	}
	err = s.interpret(q, err)
	if c.size >= notableRequest && errors.Is(err, driver.ErrConnLoss) && !q.unanswered.Load() {
		err = fmt.Errorf("%w; the request had %d bytes, and a server cuts the connection of one that is larger than its jute.maxbuffer", err, c.size)
	}
	return wrap(c, err)
}

// notableRequest is the size of a request that may be above a limit that a server's operator
// has lowered. A request for one lock is smaller.
const notableRequest = 4 << 10

// errNoAnswer is the reason of a lost connection that this client gave up: the server did not cut it.
var errNoAnswer = fmt.Errorf("the server did not answer: %w", os.ErrDeadlineExceeded)

// interpret translates an error of the client. An error that is not an answer from a
// server means that there was no answer. Then it depends on whether the frame was
// given to a living connection. If it was not, it never will be: the client has
// dropped the request, or is closed.
func (s *session) interpret(q *send, err error) error {
	alive := q.alive.Load()
	if n := q.oversized.Load(); n > 0 {
		return fmt.Errorf("%w: it has %d bytes, the maximum is %d", driver.ErrReplyTooLarge, n, maxFrame)
	}
	if errors.Is(err, zk.ErrShortBuffer) && !alive {
		return both(driver.ErrTooLarge, err)
	}
	if e, ok := translate(err); ok {
		return e
	}
	if alive {
		if q.unanswered.Load() {
			err = both(err, errNoAnswer)
		}
		return both(driver.ErrConnLoss, err) // includes answers that cannot be parsed
	}
	if final := s.finalErr(); final != nil {
		return both(final, err)
	}
	return both(driver.ErrNotSent, err)
}

// tooLarge returns the error for a request that is larger than servers read by default. The setting is named, since one that was raised
// makes no difference here.
func (s *session) tooLarge(c call) error {
	if err := s.finalErr(); err != nil {
		return wrap(c, err)
	}
	return wrap(c, fmt.Errorf("%w: it has %d bytes, and a client sends at most %d, whatever the servers' jute.maxbuffer: ask for less at once", driver.ErrTooLarge, c.size, maxRequest))
}

// wrap adds to an error which request it is about.
func wrap(c call, err error) error {
	if c.path == "" {
		return fmt.Errorf("zkdriver: %s: %w", c.op, err)
	}
	return fmt.Errorf("zkdriver: %s %q: %w", c.op, c.path, err)
}

// both combines an error with its reasons; errors.Is finds all of them. A reason that
// is already contained is not repeated.
func both(name error, reasons ...error) error {
	err := name
	for _, r := range reasons {
		if r != nil && !errors.Is(err, r) {
			err = fmt.Errorf("%w (%w)", err, r)
		}
	}
	return err
}
