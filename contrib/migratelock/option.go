package migratelock

import (
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// Defaults of the options; their comments quote them.
const (
	defaultWait       = 5 * time.Minute
	defaultDriverWait = 10 * time.Second
	defaultLabel      = "migrations"
)

// Option is a setting of a [Locker] or of a driver that [Wrap] returns. A later option
// overrides an earlier one of the same kind.
type Option interface{ apply(*settings) }

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// settings are what options set.
type settings struct {
	wait         time.Duration
	label        string
	withoutInner bool
}

func newSettings(wait time.Duration, opts []Option) settings {
	s := settings{wait: wait, label: defaultLabel}
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	return s
}

// acquire returns the options of an acquisition that may wait for d.
func (s *settings) acquire(d time.Duration) []zklock.AcquireOption {
	return []zklock.AcquireOption{zklock.WithWait(d), zklock.WithLabel(s.label)}
}

// WithWait sets how long to wait for another process that migrates. Zero or less does not
// wait. The default is five minutes for a [Locker], as it is for goose's own, and ten seconds
// for a driver.
//
// golang-migrate gives up after Migrate.LockTimeout, 15 seconds by default, but cannot stop a
// driver that goes on waiting. So the wait of a driver must be shorter.
func WithWait(d time.Duration) Option { return option(func(s *settings) { s.wait = d }) }

// WithLabel sets a text that other processes can read about the holder, such as the version
// of the program; see [zklock.WithLabel]. The default is "migrations".
func WithLabel(label string) Option { return option(func(s *settings) { s.label = label }) }

// WithoutDatabaseLock makes a driver hold only the lock in ZooKeeper. By default it holds the
// lock of the database too, so that it also excludes processes that do not use this package.
// The option is for databases whose locks do not work, such as PostgreSQL behind a pooler that
// shares connections. It has no effect on a [Locker].
func WithoutDatabaseLock() Option { return option(func(s *settings) { s.withoutInner = true }) }
