package zklock

import (
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// settings is what places go by, checked.
type settings struct {
	session.Settings // of sessions

	user string // of the URL, for errors
	host string // who contends, for others to read
	pid  int    // the same

	maxContenders int  // 0: no limit
	createRoot    bool // a root that is not there is made
	creatorOnly   bool // znodes that are made are open to their creator's identity alone
	dialect       *queue.Dialect
}

// acls returns the access list for znodes that are made.
func (c *settings) acls() []driver.ACL {
	if c.creatorOnly {
		return driver.CreatorACL(driver.PermAll)
	}
	return driver.OpenACL(driver.PermAll)
}
