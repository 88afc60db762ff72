//go:build !unix

package fleet

import "errors"

func (p *Process) freeze() error { return errors.ErrUnsupported }

func (p *Process) thaw() error { return errors.ErrUnsupported }
