package place

import (
	"bytes"
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Settings are the settings of places. The client has checked them.
type Settings struct {
	session.Settings // of sessions

	User string // the URL's user, for error texts
	Host string // host name of this process, in the data of queue nodes
	PID  int    // process id of this process, likewise

	MaxContenders int  // 0: no limit
	KeepAfter     int  // the number of uses in a row after which a place is kept at first: see Keep
	CreateRoot    bool // a missing root is created
	CreatorOnly   bool // created znodes are open to their creator's identity only
	Dialect       *queue.Dialect
}

// ACLs returns a copy of the access list for znodes that this client creates.
func (c *Settings) ACLs() []driver.ACL { return slices.Clone(c.acls()) }

// acls returns the access list for znodes that this client creates.
func (c *Settings) acls() []driver.ACL {
	if c.CreatorOnly {
		return creatorACL
	}
	return openACL
}

// They are shared by all requests: no driver writes into the lists that it is given.
var creatorACL, openACL = driver.CreatorACL(driver.PermAll), driver.OpenACL(driver.PermAll)

// parentMark is the data of a lock's znode that this library has created, and which it
// may overwrite. A znode that was found with other data was created by another program,
// and is never written. Another program may write to one of ours later. That is not
// checked before each set: sets with a version check would fail each other where
// clients contend for a name.
var parentMark = []byte("zklock")

// isMark reports whether the data of a lock's znode is this library's.
func isMark(data []byte) bool { return bytes.HasPrefix(data, parentMark) }
