//go:build !unix

package child

import "errors"

// Stop returns an error: this system cannot suspend a process.
func (p *Process) Stop() error { return errors.ErrUnsupported }

// Continue returns an error: see Stop.
func (p *Process) Continue() error { return errors.ErrUnsupported }

// Quit returns an error: see Stop.
func (p *Process) Quit() error { return errors.ErrUnsupported }

// Terminate returns an error: see Stop.
func (p *Process) Terminate() error { return errors.ErrUnsupported }
