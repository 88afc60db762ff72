package place

import (
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Settings is what places go by, checked.
type Settings struct {
	session.Settings // of sessions

	User string // of the URL, for errors
	Host string // who contends, for others to read
	PID  int    // the same

	MaxContenders int  // 0: no limit
	CreateRoot    bool // a root that is not there is made
	CreatorOnly   bool // znodes that are made are open to their creator's identity alone
	Dialect       *queue.Dialect
}

// acls returns the access list for znodes that are made.
func (c *Settings) acls() []driver.ACL {
	if c.CreatorOnly {
		return creatorACL
	}
	return openACL
}

// No driver writes into what it is given.
var creatorACL, openACL = driver.CreatorACL(driver.PermAll), driver.OpenACL(driver.PermAll)
