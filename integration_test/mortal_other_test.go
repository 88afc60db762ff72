//go:build !linux

package integration_test

import "errors"

// mortalTask is for Linux.
type mortalTask struct{}

func (*worker) mortal() error { return errors.New("session directories work on Linux only") }
