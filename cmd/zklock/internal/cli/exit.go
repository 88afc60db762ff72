package cli

import (
	"errors"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// Exit codes. They never change: scripts depend on them. A command that runs under a lock has
// its own, and 128+n if signal n has ended it.
const (
	exitOK            = 0
	exitToDo          = 1  // doctor: there is something to do
	exitUsage         = 64 // lock names included
	exitUnreachable   = 69
	exitNotAcquired   = 75 // the default of -E
	exitLost          = 76
	exitRights        = 77
	exitConfiguration = 78 // a bad URL, from a flag or the environment; a session directory; an ensemble that is not as locks need it
	exitSlotHasRun    = 79 // the default of -E with --once or --every
	exitFailure       = 125
	exitNotExecutable = 126
	exitNotFound      = 127
)

// exitTable is the part of the help that lists the exit codes.
const exitTable = `Exit codes:
  0-255  the command's own
  128+n  signal n has ended the command, or the wait for the lock
  75     not acquired (-E sets another one, but for run --once or --every)
  76     the lock was lost, or TERM was sent because the lease was not renewed
  64     usage, a bad lock name included
  69     the ensemble cannot be reached
  77     rights are missing on znodes
  78     configuration: the URL or its session directory, an identity that is refused, a port that is
         not ZooKeeper's, TLS that does not fit, an ensemble without the root, that grants too short sessions or that was set
         back, a name in use as another kind of lock
  79     run --once or --every: the slot has run before (-E sets another one)
  125    zklock itself has failed
  126    the command cannot be executed
  127    the command was not found`

// failure is an error with the exit code for it.
type failure struct {
	code   int
	err    error // nil: nothing is printed
	silent bool
}

// Error implements error.
func (f *failure) Error() string { return f.err.Error() }

// Unwrap returns the error.
func (f *failure) Unwrap() error { return f.err }

// exit returns an error that ends the program with a code and prints nothing.
func exit(code int) error {
	if code == exitOK {
		return nil
	}
	return &failure{code: code, err: errors.New("no message"), silent: true}
}

// fail returns an error that ends the program with a code.
func fail(code int, err error) error { return &failure{code: code, err: err} }

// usage returns an error of the command line.
func usage(text string) error { return fail(exitUsage, errors.New(text)) }

// failed returns an error of package zklock with the code for it.
func failed(err error) error {
	if err == nil {
		return nil
	}
	var own *failure
	if errors.As(err, &own) {
		return err
	}
	return fail(codeOf(err), err)
}

// codes are the exit codes of errors. The first match decides, so an error stands before its
// parent, and a driver's reason before the ErrUnavailable that wraps it.
var codes = []struct {
	err  error
	code int
}{
	{driver.ErrTLS, exitConfiguration},
	{driver.ErrProtocol, exitConfiguration},   // the port is that of TLS, or of another program
	{driver.ErrAuthFailed, exitConfiguration}, // the identity is refused: no right would help
	{zklock.ErrNoAuth, exitRights},
	{zklock.ErrBadEnsemble, exitConfiguration},
	{zklock.ErrInvalidName, exitUsage},
	{driver.ErrQuotaExceeded, exitConfiguration},
	{driver.ErrLocalSession, exitConfiguration},
	{zklock.ErrUnavailable, exitUnreachable},
	{zklock.ErrConflict, exitConfiguration},
	{zklock.ErrTooManyWaiters, exitNotAcquired},
	{zklock.ErrNotAcquired, exitNotAcquired},
	{zklock.ErrDeadlock, exitNotAcquired}, // of nested runs: the others go on, and a later try may succeed
	{errSlotHasRun, exitSlotHasRun},
	{zklock.ErrLost, exitLost},
}

func codeOf(err error) int {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return exitFailure
}
