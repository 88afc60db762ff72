//go:build !unix

package main

import (
	"errors"
	"os"
)

// pauseProcess fails: this system has no signal that stops a process.
func pauseProcess(*os.Process) (resume func() error, err error) {
	return nil, errors.ErrUnsupported
}
