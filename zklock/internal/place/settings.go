package place

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/internal/nearest"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// NodeSettings are the settings of places and their znodes. The client has checked them.
type NodeSettings struct {
	session.Settings // of sessions

	Identity string // what is known of this client's identity, for errors about a refusal
	Host     string // host name of this process, in the data of queue nodes
	PID      int    // process id of this process, likewise

	MaxContenders int          // 0: no limit
	KeepAfter     int          // how many uses in a row make a place one that may be kept, at first: see mayKeep
	CreateRoot    bool         // a missing root is created
	ACL           []driver.ACL // of the znodes that this client creates; all requests share it, and nothing writes into it
	Dialect       *queue.Dialect
}

// explain translates a driver's error, which has a definite outcome, into the errors of
// package errs, with the path that it is about.
func (c *NodeSettings) explain(err error, path string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errs.ErrSessionOver), errors.Is(err, errs.ErrUnavailable), errors.Is(err, errs.ErrNotAcquired), errors.Is(err, errs.ErrClosed), errors.Is(err, errs.ErrNoAuth):
		return err // its text is complete
	case errors.Is(err, driver.ErrInvalidACL):
		return fmt.Errorf("%w: %s: the servers refuse the access list%s. acl=creator needs an identity: a user in the URL, SASL, or a client certificate from which the servers derive one. For SASL, they need authProvider.sasl: %w", errs.ErrNoAuth, path, c.meantScheme(), err)
	case errors.Is(err, driver.ErrNoAuth):
		return fmt.Errorf("%w %s: %s: %w", errs.ErrNoAuth, c.Identity, path, err)
	case errors.Is(err, driver.ErrAuthFailed):
		return fmt.Errorf("%w: %s: %w", errs.ErrNoAuth, path, err)
	case errors.Is(err, driver.ErrReplyTooLarge):
		return fmt.Errorf("%s: there are more znodes below this path than one reply can list: remove some: %w", path, err)
	case errors.Is(err, driver.ErrQuotaExceeded):
		return fmt.Errorf("%w: %s: raise the quota of this path, or of one above it, with setquota: %w", errQuota, path, err)
	case errors.Is(err, driver.ErrNoChildrenForEphemerals):
		return fmt.Errorf("%w: %s: another program has an ephemeral znode at this path or above it, and no znode can be below that: use another root or name, or have it removed: %w", errs.ErrConflict, path, err)
	case errors.Is(err, driver.ErrLocalSession):
		return fmt.Errorf("%w: %s: %w", errRefusing, path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// aclSchemes are the schemes of access lists that every server knows, or knows with a setting. Servers
// can have others by plugins.
var aclSchemes = []string{"auth", "digest", "ip", "sasl", "super", "world", "x509"}

// meantScheme returns a hint at a scheme of the access list that is probably mistyped; "" if none is.
func (c *NodeSettings) meantScheme() string {
	for _, a := range c.ACL {
		if near := nearest.To(a.Scheme, aclSchemes); near != "" && !slices.Contains(aclSchemes, a.Scheme) {
			return fmt.Sprintf(" (did you mean the scheme %q?)", near)
		}
	}
	return ""
}

// Settings of the servers that no lock can work with, and that only an operator can change.
var (
	errQuota    = errs.Case(errs.ErrUnavailable, "the ensemble's quota is used up")
	errRefusing = errs.Case(errs.ErrUnavailable, "the servers refuse queue nodes")
)

// Logged returns a text for the log for a driver's error. Drivers' own texts contain
// paths, and so names of locks, which do not belong in the log.
func Logged(err error) string {
	for _, known := range []error{driver.ErrNoAuth, driver.ErrAuthFailed, driver.ErrInvalidACL, driver.ErrBadVersion,
		driver.ErrNotEmpty, driver.ErrQuotaExceeded, driver.ErrTooLarge, driver.ErrReplyTooLarge, errs.ErrUnavailable} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "refused by the server"
}

// explainRights returns the error about missing rights. missing describes each of them.
func (c *NodeSettings) explainRights(missing []string, cause error) error {
	return fmt.Errorf("%w %s: %s: %w", errs.ErrNoAuth, c.Identity, strings.Join(missing, "; "), cause)
}

// tooMany returns the error of a contender that max_contenders does not allow.
func (c *NodeSettings) tooMany() error {
	return fmt.Errorf("%w: the queue already has max_contenders=%d contenders", errs.ErrTooManyWaiters, c.MaxContenders)
}

// explainList translates an error of reading other contenders.
func (c *NodeSettings) explainList(err error, dir string) error {
	switch {
	case errors.Is(err, driver.ErrReplyTooLarge):
		return c.explain(err, dir)
	case errors.Is(err, driver.ErrNoAuth):
		return fmt.Errorf("%w %s to read the contenders below %s, so this client cannot know whether they hold the lock: %w", errs.ErrNoAuth, c.Identity, dir, err)
	}
	return err
}

// Shared holds what all places of a client share.
type Shared struct {
	cfg      *NodeSettings
	inUse    func(path string) bool   // whether this client holds, waits for or keeps the name with that path
	straysIn func([]queue.Node) []int // the indexes of the nodes that no place owns, of those that the client's sessions have made; it locks the pool's mutex
	parents  parents

	rootMissing atomic.Bool // the root was missing when a session was opened, and was not made since
	hadRoot     atomic.Bool // the root was found or made before
}

// NewShared returns the Shared of a client with these settings, which must not change. Serve is
// called before any place is taken.
func NewShared(cfg *NodeSettings) *Shared { return &Shared{cfg: cfg} }

// Origin describes the request that a place was taken for. It goes into the data of the
// queue nodes, where other clients read it.
type Origin struct {
	Label, Trace string    // WithLabel's label, and the trace context that the Inject hook returned
	Since        time.Time // when the request began, with the monotonic clock; zero if there is none
	Revocable    bool      // its caller gets requests to give the lock back
}

// since returns Since in milliseconds since the Unix epoch, as the data of nodes have it; 0 if there is none.
func (o Origin) since() int64 {
	if o.Since.IsZero() {
		return 0
	}
	return o.Since.UnixMilli()
}

// parentMark is the data of a lock's znode that this library has created, and may overwrite. A
// znode with other data was created by another program, and is never written. Another program
// may write to one of ours later. The sets do not check that: with a version check they would
// fail each other where clients contend for a name.
var parentMark = []byte("zklock")

// isMark reports whether the data of a lock's znode is this library's.
func isMark(data []byte) bool { return bytes.HasPrefix(data, parentMark) }
