package place

import (
	"fmt"

	"github.com/zklock/go-zklock/zklock/driver"
)

// right is one operation of the probe and what it takes.
type right struct {
	op       driver.Op
	perm     string // ZooKeeper's name of the permission
	on       string // path on which it is needed
	why      string
	optional bool // there is a way round it
}

// missing says that it is missing.
func (r right) missing() string { return fmt.Sprintf("no %s on %s, %s", r.perm, r.on, r.why) }

// readRoot is the right without which there is not even a session.
func (c *Settings) readRoot() right {
	return right{op: driver.CheckOp(c.Root, driver.AnyVersion), perm: "READ", on: c.Root, why: "to look for it, and for heartbeats"}
}

// rights are the operations of a probe with an imaginary lock at path.
func (c *Settings) rights(path string) []right {
	contender := path + "/probe"
	const imaginary = " (a znode that this client would make for a lock)"
	return []right{
		c.readRoot(),
		{op: driver.CreateOp(path, parentMark, driver.Persistent, c.acls()), perm: "CREATE", on: c.Root, why: "to make the znodes of locks"},
		{op: driver.CreateOp(contender, nil, driver.Ephemeral, c.acls()), perm: "CREATE", on: path + imaginary, why: "to queue"},
		{op: driver.SetOp(path, parentMark, driver.AnyVersion), perm: "WRITE", on: path + imaginary, why: "to queue in one round trip"},
		{op: driver.CheckOp(path, driver.AnyVersion), perm: "READ", on: path + imaginary, why: "to list the queue"},
		{op: driver.CheckOp(contender, driver.AnyVersion), perm: "READ", on: contender, why: "to wait for the one ahead"},
		{op: driver.DeleteOp(contender, driver.AnyVersion), perm: "DELETE", on: path + imaginary, why: "to release"},
		{op: driver.DeleteOp(path, driver.AnyVersion), perm: "DELETE", on: c.Root, why: "to remove idle znodes of locks before the servers do", optional: true},
	}
}
