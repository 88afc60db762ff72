package zklock

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/zklock/go-zklock/internal/nearest"
	"github.com/zklock/go-zklock/internal/sessiondir"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// maxPoolSessions is more than a client needs: each session can carry any number of
// locks, and each costs the ensemble a heartbeat.
const maxPoolSessions = 1000

// maxDuration is more than any setting needs, and small enough that sums and
// multiples do not overflow.
const maxDuration = 10 * 365 * 24 * time.Hour

// key is a setting that a URL has under a key, and a Config in a field.
type key struct {
	set      func(c *Config, v string) error // sets the field to what the URL has
	complete func(c *Config) error           // checks the field; gives it its default if it is not set
}

// coreKeys are the keys of the core, with their defaults and the least that they can be.
var coreKeys = map[string]key{
	"session_timeout":   durationKey(30*time.Second, time.Millisecond, func(c *Config) *time.Duration { return &c.SessionTimeout }),
	"tick_time":         durationKey(3*time.Second, time.Millisecond, func(c *Config) *time.Duration { return &c.TickTime }), // ZooKeeper's sample configuration has 2s, its code 3s
	"connect_timeout":   durationKey(10*time.Second, time.Millisecond, func(c *Config) *time.Duration { return &c.ConnectTimeout }),
	"loss_delay":        durationKey(0, 0, func(c *Config) *time.Duration { return &c.LossDelay }),
	"pool_max_sessions": intKey(2, 1, maxPoolSessions, func(c *Config) *int { return &c.PoolMaxSessions }),
	"pool_max_lifetime": durationKey(0, 0, func(c *Config) *time.Duration { return &c.PoolMaxLifetime }),
	"jute_maxbuffer":    intKey(1<<20-1, 1<<12, math.MaxInt32, func(c *Config) *int { return &c.JuteMaxbuffer }),
	"handover_limit":    intKey(16, 0, math.MaxInt32, func(c *Config) *int { return &c.HandoverLimit }),
	"handover_time":     durationKey(100*time.Millisecond, 0, func(c *Config) *time.Duration { return &c.HandoverTime }),
	"keep":              durationKey(0, 0, func(c *Config) *time.Duration { return &c.Keep }),
	"keep_max":          intKey(1000, 1, math.MaxInt32, func(c *Config) *int { return &c.KeepMax }),
	"max_waiters":       intKey(0, 0, math.MaxInt32, func(c *Config) *int { return &c.MaxWaiters }),
	"max_contenders":    intKey(0, 0, math.MaxInt32, func(c *Config) *int { return &c.MaxContenders }),
	"max_names":         intKey(0, 0, math.MaxInt32, func(c *Config) *int { return &c.MaxNames }),
	"deadlock_timeout":  durationKey(time.Second, 0, func(c *Config) *time.Duration { return &c.DeadlockTimeout }),
	"create_root": {
		set: func(c *Config, v string) error {
			b, err := strconv.ParseBool(v)
			if err != nil {
				return errors.New("want true or false")
			}
			c.RequireRoot = !b
			return nil
		},
		complete: func(*Config) error { return nil },
	},
	"dialect": textKey(queue.Default.Name, func(c *Config) *string { return &c.Dialect }, func(v string) error {
		_, err := queue.ParseDialect(v)
		return err
	}),
	"session_dir": textKey("", func(c *Config) *string { return &c.SessionDir }, sessiondir.CheckPath),
	"acl": textKey("", func(c *Config) *string { return &c.ACL }, func(v string) error {
		_, err := driver.ParseACL(v)
		return err
	}),
}

func durationKey(usual, least time.Duration, field func(*Config) *time.Duration) key {
	return numberKey(time.ParseDuration, "want a duration such as 10s or 1500ms", usual, least, maxDuration, "want from %v to %v", field)
}

func intKey(usual, least, most int, field func(*Config) *int) key {
	return numberKey(strconv.Atoi, "want a number", usual, least, most, "want a number from %v to %v", field)
}

// numberKey returns a key with a number from least to most. malformed replaces the errors of parse,
// which show the text. If 0 is allowed and is not the default, it means never: a Config has a
// negative number for it, since its 0 stands for the default.
func numberKey[T int | time.Duration](parse func(string) (T, error), malformed string, usual, least, most T, outside string, field func(*Config) *T) key {
	never := least == 0 && usual != 0
	within := func(n T) error {
		if n < least || n > most {
			return fmt.Errorf(outside, least, most)
		}
		return nil
	}
	return key{
		set: func(c *Config, text string) error {
			n, err := parse(text)
			if err != nil {
				return errors.New(malformed)
			}
			if err := within(n); err != nil {
				return err
			}
			if *field(c) = n; n == 0 && never {
				*field(c) = -1
			}
			return nil
		},
		complete: func(c *Config) error {
			switch n := field(c); {
			case *n == 0:
				*n = usual
			case *n < 0 && never:
				*n = 0
			default:
				return within(*n)
			}
			return nil
		},
	}
}

func textKey(usual string, field func(*Config) *string, within func(string) error) key {
	return key{
		set: func(c *Config, v string) error {
			err := within(v)
			if err == nil {
				*field(c) = v
			}
			return err
		},
		complete: func(c *Config) error {
			if v := field(c); *v == "" {
				*v = usual
				return nil
			}
			return within(*field(c))
		},
	}
}

// setParams sets the settings that a URL has. Each key must have one value, and be known to the
// core or be among driverKeys.
func (c *Config) setParams(params url.Values, driverKeys []string) error {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		values := params[name]
		if len(values) != 1 {
			return fmt.Errorf("key %s is given %d times, want it once", nearest.Shown(name), len(values))
		}
		k, core := coreKeys[name]
		switch {
		case core:
			// The error does not show the value: the reader can look it up, and it
			// may be a secret that was put in the wrong place.
			if err := k.set(c, values[0]); err != nil {
				return fmt.Errorf("key %q: %w", name, err)
			}
		case slices.Contains(driverKeys, name):
			if c.DriverSettings == nil {
				c.DriverSettings = make(map[string]string)
			}
			c.DriverSettings[name] = values[0]
		default:
			return unknownKey(name, driverKeys)
		}
	}
	return nil
}

// unknownKey returns the error for a key of a URL that neither the core nor the driver knows.
func unknownKey(name string, driverKeys []string) error {
	known := slices.Concat(slices.Collect(maps.Keys(coreKeys)), driverKeys)
	slices.Sort(known)
	return nearest.Unknown(name, slices.Compact(known))
}

// checkDriverSettings checks the keys of DriverSettings, which are those of the driver.
func (c *Config) checkDriverSettings(driverKeys []string) error {
	for _, name := range slices.Sorted(maps.Keys(c.DriverSettings)) {
		_, core := coreKeys[name]
		switch {
		case slices.Contains(driverKeys, name):
		case core:
			return fmt.Errorf("key %q in DriverSettings is not one of the driver: set the field of the Config for that key", name)
		default:
			return fmt.Errorf("DriverSettings: %w", nearest.Unknown(name, driverKeys))
		}
	}
	return nil
}
