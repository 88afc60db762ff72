// Package faultcontrol has a faultdriver for tests of this project that decide when each operation
// goes on.
package faultcontrol

import "github.com/zklock/go-zklock/zklock/driver"

var control any

// Control does the same as faultdriver.Wrap, with faultdriver's Op and Fault. It calls decide in
// the goroutine of the operation, before the operation is executed, with no mutex locked. decide
// may block for as long as it needs; it must be safe for concurrent use.
func Control[Op, Fault any](c driver.Connector, decide func(Op) Fault) driver.Connector {
	return control.(func(driver.Connector, func(Op) Fault) driver.Connector)(c, decide)
}

// Provide sets what Control calls. Package faultdriver calls it, since this package cannot import
// it.
func Provide[Op, Fault any](f func(driver.Connector, func(Op) Fault) driver.Connector) { control = f }
