package zklock

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// maxPoolSessions is more than a client needs: each session can carry any number of
// locks, and each costs the ensemble a heartbeat.
const maxPoolSessions = 1000

// maxDuration is more than any setting needs, and small enough that sums and
// multiples do not overflow.
const maxDuration = 10 * 365 * 24 * time.Hour

// The values of the key acl.
const (
	aclOpen    = "open"    // all clients may use the znodes that zklock creates
	aclCreator = "creator" // only clients with the creator's identity may
)

// key is a setting that a URL has under a key, and a Config in a field.
type key struct {
	set   func(c *Config, v string) error // sets the field to what the URL has
	check func(c *Config) error           // checks the field
}

// coreKeys are the keys of the core.
var coreKeys = map[string]key{
	"session_timeout":   durationKey(time.Millisecond, func(c *Config) *time.Duration { return &c.SessionTimeout }),
	"tick_time":         durationKey(time.Millisecond, func(c *Config) *time.Duration { return &c.TickTime }),
	"connect_timeout":   durationKey(time.Millisecond, func(c *Config) *time.Duration { return &c.ConnectTimeout }),
	"loss_delay":        durationKey(0, func(c *Config) *time.Duration { return &c.LossDelay }),
	"pool_max_sessions": intKey(1, maxPoolSessions, func(c *Config) *int { return &c.PoolMaxSessions }),
	"pool_max_lifetime": durationKey(0, func(c *Config) *time.Duration { return &c.PoolMaxLifetime }),
	"handover_limit":    never(intKey(0, math.MaxInt32, func(c *Config) *int { return &c.HandoverLimit }), func(c *Config) *int { return &c.HandoverLimit }),
	"handover_time":     never(durationKey(0, func(c *Config) *time.Duration { return &c.HandoverTime }), func(c *Config) *time.Duration { return &c.HandoverTime }),
	"keep":              durationKey(0, func(c *Config) *time.Duration { return &c.Keep }),
	"keep_max":          intKey(1, math.MaxInt32, func(c *Config) *int { return &c.KeepMax }),
	"max_waiters":       intKey(0, math.MaxInt32, func(c *Config) *int { return &c.MaxWaiters }),
	"max_contenders":    intKey(0, math.MaxInt32, func(c *Config) *int { return &c.MaxContenders }),
	"max_names":         intKey(0, math.MaxInt32, func(c *Config) *int { return &c.MaxNames }),
	"create_root": {
		set: func(c *Config, v string) error {
			b, err := strconv.ParseBool(v)
			if err != nil {
				return errors.New("want true or false")
			}
			c.RequireRoot = !b
			return nil
		},
		check: func(*Config) error { return nil },
	},
	"dialect": textKey(func(c *Config) *string { return &c.Dialect }, func(v string) error {
		_, err := queue.ParseDialect(v)
		return err
	}),
	"acl": textKey(func(c *Config) *string { return &c.ACL }, func(v string) error {
		if v != aclOpen && v != aclCreator {
			return fmt.Errorf("want %s or %s", aclCreator, aclOpen)
		}
		return nil
	}),
}

func durationKey(least time.Duration, field func(*Config) *time.Duration) key {
	return numberKey(time.ParseDuration, "want a duration such as 10s or 1500ms", least, maxDuration, "want from %v to %v", field)
}

func intKey(least, most int, field func(*Config) *int) key {
	return numberKey(strconv.Atoi, "want a number", least, most, "want a number from %v to %v", field)
}

// numberKey returns a key with a number from least to most. malformed replaces the errors of parse,
// which show the text.
func numberKey[T int | time.Duration](parse func(string) (T, error), malformed string, least, most T, outside string, field func(*Config) *T) key {
	return newKey(field, func(text string) (T, error) {
		n, err := parse(text)
		if err != nil {
			err = errors.New(malformed)
		}
		return n, err
	}, func(n T) error {
		if n < least || n > most {
			return fmt.Errorf(outside, least, most)
		}
		return nil
	})
}

func textKey(field func(*Config) *string, within func(string) error) key {
	return newKey(field, func(v string) (string, error) { return v, nil }, within)
}

// newKey returns a key whose field has the default if it has its zero value.
func newKey[T comparable](field func(*Config) *T, parse func(string) (T, error), within func(T) error) key {
	return key{
		set: func(c *Config, text string) error {
			v, err := parse(text)
			if err == nil {
				err = within(v)
			}
			if err == nil {
				*field(c) = v
			}
			return err
		},
		check: func(c *Config) error {
			var unset T
			if v := *field(c); v != unset {
				return within(v)
			}
			return nil
		},
	}
}

// never returns a key whose 0 in a URL is not the default but means never: the field is
// negative then.
func never[T int | time.Duration](k key, field func(*Config) *T) key {
	return key{
		set: func(c *Config, text string) error {
			err := k.set(c, text)
			if err == nil && *field(c) == 0 {
				*field(c) = -1
			}
			return err
		},
		check: func(c *Config) error {
			if *field(c) < 0 {
				return nil
			}
			return k.check(c)
		},
	}
}

// setParams sets the settings that a URL has. Each key must have one value, and be known to the
// core or be among driverKeys.
func (c *Config) setParams(params url.Values, driverKeys []string) error {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		values := params[name]
		if len(values) != 1 {
			return fmt.Errorf("key %s is given %d times, want it once", shownKey(name), len(values))
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

// unknownKey returns the error for a key that neither the core nor the driver knows.
func unknownKey(name string, driverKeys []string) error {
	known := slices.Sorted(maps.Keys(coreKeys))
	known = slices.Compact(slices.Sorted(slices.Values(append(known, driverKeys...))))
	return fmt.Errorf("unknown key %s (known: %s)", shownKey(name), strings.Join(known, ", "))
}

// shownKey returns how a key appears in an error: quoted if it looks like a key. If it
// does not, the error does not show it, because a misplaced character in the URL may
// have made a password a key.
func shownKey(key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-.", r)
	}) {
		return "(not shown: it is empty, or has characters that no key has)"
	}
	return strconv.Quote(key)
}
