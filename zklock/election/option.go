package election

import (
	"log/slog"
	"time"
)

// Option is a setting of an [Election].
type Option interface{ apply(*settings) }

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// settings are what options set.
type settings struct {
	value      string
	stuckAfter time.Duration
	stuck      func(*Term)
	logger     *slog.Logger
	revocable  bool
	maxHold    time.Duration
}

// stuckAfter is the default of WithStuck: how long a leader may go on after the end of its
// context before the client logs it.
const stuckAfter = 10 * time.Second

// WithValue sets the text that other processes read of this candidate when it leads, such
// as its address. Without it, or with "", [Leader] has the host and the process id in the
// form host/pid, as far as the client's identity has them; see [zklock.WithIdentity].
//
// A value is never cut. It has up to 256 bytes of valid UTF-8, in JSON: a character that JSON
// escapes, such as a quote, < or &, takes as many bytes as its escape has. With any other value
// the candidacy fails with an error that matches [zklock.ErrConflict].
func WithValue(value string) Option { return option(func(s *settings) { s.value = value }) }

// WithStuck sets a function that [Election.Run] calls, once a term, when the leader's function has
// not returned within d after its context ended. If the lock is still held at that moment, no other
// candidate can lead until the leader's function returns; if it was lost, another may lead already.
// f can end the process, for example.
//
// f runs on a goroutine of its own. Run waits for it before it goes on, but resigns before that. d is 10 seconds by default,
// and if it is zero or less. Run logs a leader that is stuck with or without this option; f may be
// nil.
func WithStuck(d time.Duration, f func(*Term)) Option {
	return option(func(s *settings) {
		if d <= 0 {
			d = stuckAfter
		}
		s.stuckAfter, s.stuck = d, f
	})
}

// WithRevocable notifies a leader when an operator asks it to resign, with
// [zklock.Client.Revoke]: the context that [Election.Run] passes to the leader's function ends,
// with a cause that matches [zklock.ErrRevoked], and the channel of [zklock.Lock.Revoked] is
// closed. The term goes on until the function has returned, or until [Term.Resign]. It costs
// one read for each term.
func WithRevocable() Option { return option(func(s *settings) { s.revocable = true }) }

// WithMaxHold ends the context that [Election.Run] passes to the leader's function when the term has lasted for d, with
// [zklock.ErrMaxHold] as the cause: see [zklock.WithMaxHold]. The leader's function has to return, and another
// candidate can lead. So a leader whose work hangs does not lead for ever; see [WithStuck] for one that does not
// return. By default the time is not limited.
func WithMaxHold(d time.Duration) Option { return option(func(s *settings) { s.maxHold = d }) }

// WithLogger sets the logger of [Election.Run]: for errors of the leader's function, for
// candidacies that failed, and for leaders that are stuck. By default it is slog's default
// logger. WithLogger(nil) turns the log off. Run waits for its handler as [zklock.WithLogger] describes.
func WithLogger(l *slog.Logger) Option {
	return option(func(s *settings) {
		if l == nil {
			l = slog.New(slog.DiscardHandler)
		}
		s.logger = l
	})
}
