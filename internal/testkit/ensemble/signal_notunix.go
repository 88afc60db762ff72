//go:build !unix

package ensemble

import "errors"

// errNoSignals is the error of freezing and thawing on systems without these signals.
var errNoSignals = errors.New("ensemble: this system cannot stop and continue a process")

// terminate kills the process: this system has no signal that asks it to end.
func (p *process) terminate() error { return p.cmd.Process.Kill() }

func (p *process) freeze() error { return errNoSignals }

func (p *process) thaw() error { return errNoSignals }
