//go:build unix

package run

import (
	"os"
	"os/signal"
	"syscall"
)

// forwarded are the signals that go to the command.
var forwarded = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// Signals are the signals that the wrapper gets. There is one in a process: it changes what
// signals do to the process.
type Signals struct {
	caught    chan os.Signal // signals of the list forwarded, in the order of their arrival
	continued chan os.Signal // CONT
	pipe      chan os.Signal // PIPE, which is not read
	children  chan os.Signal // CHLD
	ttou      chan os.Signal // TTOU, which is not read; nil if the wrapper was started to ignore it
}

// CatchSignals begins to catch signals. A signal that the wrapper was started to ignore, as
// nohup does it, stays ignored, by the command too.
func CatchSignals() *Signals {
	s := &Signals{caught: make(chan os.Signal, 64), continued: make(chan os.Signal, 1), pipe: make(chan os.Signal, 1), children: make(chan os.Signal, 1)}
	for _, sig := range forwarded {
		if !signal.Ignored(sig) {
			signal.Notify(s.caught, sig)
		}
	}
	signal.Notify(s.continued, syscall.SIGCONT)
	// Before the first child is started. Otherwise the kernel would report no end of a child to
	// a wrapper that was started with CHLD ignored.
	signal.Notify(s.children, syscall.SIGCHLD)
	// A message to a reader that is gone must not end the wrapper. If the signal was ignored,
	// the command would ignore it too.
	if !signal.Ignored(syscall.SIGPIPE) {
		signal.Notify(s.pipe, syscall.SIGPIPE)
	}
	if !signal.Ignored(syscall.SIGTTOU) {
		s.ttou = make(chan os.Signal, 1)
	}
	return s
}

// pass makes the next command begin with the default for TTOU. The wrapper has ignored TTOU since
// the last command, so pass catches it: a child inherits that a signal is ignored, and not that it
// is caught.
func (s *Signals) pass() {
	if s.ttou != nil {
		signal.Notify(s.ttou, syscall.SIGTTOU)
	}
}

// Caught returns the channel of the signals that a command would get.
func (s *Signals) Caught() <-chan os.Signal { return s.caught }

// EndsWait reports whether a signal ends the wait for the lock.
func EndsWait(sig os.Signal) bool {
	return sig == syscall.SIGTERM || sig == syscall.SIGINT || sig == syscall.SIGHUP
}
