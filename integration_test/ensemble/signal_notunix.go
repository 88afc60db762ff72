//go:build !unix

package ensemble

import "errors"

// errNoSignals is what freezing yields where there is nothing to do it with.
var errNoSignals = errors.New("ensemble: this system cannot stop and continue a process")

// terminate ends the process: there is no way to ask it to.
func (p *process) terminate() error { return p.cmd.Process.Kill() }

func (p *process) freeze() error { return errNoSignals }

func (p *process) thaw() error { return errNoSignals }
