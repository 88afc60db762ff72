package place

import (
	"fmt"

	"github.com/zklock/go-zklock/zklock/driver"
)

// right is one operation of the probe, and the right that it needs.
type right struct {
	op       driver.Op
	perm     string // ZooKeeper's name of the permission
	on       string // path on which it is needed
	why      string // what locks need it for; begins with "to"
	optional bool   // locks work without it
}

// missing returns the text of an error that the right is missing.
func (r right) missing() string { return fmt.Sprintf("no %s on %s, needed %s", r.perm, r.on, r.why) }

// readRoot returns the right without which no session can be used.
func (c *Settings) readRoot() right {
	return right{op: driver.CheckOp(c.Root, driver.AnyVersion), perm: "READ", on: c.Root, why: "to find it, and for heartbeats"}
}

// rights returns the operations of a probe with an imaginary lock whose znode is at path.
func (c *Settings) rights(path string) []right {
	contender := path + "/probe"
	const imaginary = " (a znode that this client would create for a lock)"
	return []right{
		c.readRoot(),
		{op: driver.CreateOp(path, parentMark, driver.Persistent, c.acls()), perm: "CREATE", on: c.Root, why: "to create the znodes of locks"},
		{op: driver.CreateOp(contender, nil, driver.Ephemeral, c.acls()), perm: "CREATE", on: path + imaginary, why: "to queue"},
		{op: driver.SetOp(path, parentMark, driver.AnyVersion), perm: "WRITE", on: path + imaginary, why: "to queue in one round trip"},
		{op: driver.CheckOp(path, driver.AnyVersion), perm: "READ", on: path + imaginary, why: "to list the queue"},
		{op: driver.CheckOp(contender, driver.AnyVersion), perm: "READ", on: contender, why: "to wait for the one ahead"},
		{op: driver.DeleteOp(contender, driver.AnyVersion), perm: "DELETE", on: path + imaginary, why: "to release"},
		{op: driver.DeleteOp(path, driver.AnyVersion), perm: "DELETE", on: c.Root, why: "to remove idle znodes of locks before the servers do", optional: true},
	}
}
