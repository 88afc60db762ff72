package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Defaults of the core's URL keys; docs/urls.md lists them.
const (
	defaultRoot           = "/zklock"
	defaultSessionTimeout = 10 * time.Second
	defaultTickTime       = 3 * time.Second // ZooKeeper's sample configuration has 2s, its code 3s
	defaultConnectTimeout = 10 * time.Second
	defaultPoolSessions   = 2
	defaultHandoverLimit  = 16
	defaultHandoverTime   = 100 * time.Millisecond
	defaultKeepMax        = 1000
)

// maxPoolSessions is more than a client needs: each session can carry any number of
// locks, and each costs the ensemble a heartbeat.
const maxPoolSessions = 1000

// maxDuration is more than any setting needs, and small enough that sums and
// multiples do not overflow.
const maxDuration = 10 * 365 * 24 * time.Hour

// Config has the settings of a [Client]: what a URL says, in typed fields. A field with its
// zero value has the default. So a Config can be a literal, as it can be that of [ParseURL],
// and the two behave alike: [OpenConfig] checks every Config. docs/urls.md says what each
// setting means, under its key.
type Config struct {
	// Scheme chooses the driver, and with it the ensemble: zk, zks or mem.
	Scheme string

	// Hosts are the ensemble's servers, as in a URL: each a host with or without a port.
	Hosts []string

	// User is the user as which sessions authenticate; "" for none.
	User string

	// Password is the password of User.
	Password driver.Secret

	// DriverSettings are the settings of the driver, such as tls_ca, by their keys.
	DriverSettings map[string]string

	// Connector, if it is not nil, opens the sessions instead of a driver, as in tests with
	// memdriver. The fields above then have no effect. The Client owns the connector:
	// Client.Close closes it.
	Connector driver.Connector

	// Root is the path of the root, the znode below which the client keeps its locks; ""
	// means /zklock. It may have characters that a root in a URL cannot have.
	Root string

	// SessionTimeout is the key session_timeout, 10s by default.
	SessionTimeout time.Duration

	// TickTime is the key tick_time, 3s by default.
	TickTime time.Duration

	// ConnectTimeout is the key connect_timeout, 10s by default.
	ConnectTimeout time.Duration

	// LossDelay is the key loss_delay.
	LossDelay time.Duration

	// PoolMaxSessions is the key pool_max_sessions, 2 by default.
	PoolMaxSessions int

	// PoolMaxLifetime is the key pool_max_lifetime; 0 means that sessions are not replaced
	// because of their age.
	PoolMaxLifetime time.Duration

	// HandoverLimit is the key handover_limit, 16 by default. A negative number is the 0 of
	// the URL: no hand-over.
	HandoverLimit int

	// HandoverTime is the key handover_time, 100ms by default. A negative time is the 0 of
	// the URL: no hand-over.
	HandoverTime time.Duration

	// Keep is the key keep; 0 means that no name is kept.
	Keep time.Duration

	// KeepMax is the key keep_max, 1000 by default.
	KeepMax int

	// Dialect is the key dialect: zklock, which is the default, curator, zk, kazoo or latch.
	Dialect string

	// MaxWaiters is the key max_waiters; 0 means no limit.
	MaxWaiters int

	// MaxContenders is the key max_contenders; 0 means no limit.
	MaxContenders int

	// MaxNames is the key max_names; 0 means no limit.
	MaxNames int

	// RequireRoot is create_root=false: the client does not make the root if it is missing.
	RequireRoot bool

	// ACL is the key acl: creator or open. The default is creator with a User, else open.
	ACL string
}

// config has all settings of a Client. newClient gets it checked.
type config struct {
	rules

	hooks Hooks
}

// The values of the key acl.
const (
	aclOpen    = "open"    // all clients may use the znodes that zklock creates
	aclCreator = "creator" // only clients with the creator's identity may
)

// complete checks each setting, and fills in the defaults.
func (c *Config) complete() (config, error) {
	for _, name := range slices.Sorted(maps.Keys(coreKeys)) {
		if err := coreKeys[name].check(c); err != nil {
			return config{}, fmt.Errorf("key %q: %w", name, err)
		}
	}
	dialect, _ := queue.ParseDialect(cmp.Or(c.Dialect, queue.Default.Name))
	host, _ := os.Hostname() // "" if the system does not know one
	cfg := config{rules: rules{
		Settings: place.Settings{
			Settings: session.Settings{
				Root:            cmp.Or(c.Root, defaultRoot),
				SessionTimeout:  cmp.Or(c.SessionTimeout, defaultSessionTimeout),
				TickTime:        cmp.Or(c.TickTime, defaultTickTime),
				ConnectTimeout:  cmp.Or(c.ConnectTimeout, defaultConnectTimeout),
				LossDelay:       c.LossDelay,
				PoolMaxSessions: cmp.Or(c.PoolMaxSessions, defaultPoolSessions),
				PoolMaxLifetime: c.PoolMaxLifetime,
				Jitter:          session.Jitter,
				Logger:          defaultLogger,
			},
			MaxContenders: c.MaxContenders,
			KeepAfter:     place.KeepAfter,
			Host:          host,
			PID:           os.Getpid(),
			CreateRoot:    !c.RequireRoot,
			Dialect:       dialect,
		},
		handoverLimit: max(cmp.Or(c.HandoverLimit, defaultHandoverLimit), 0),
		handoverTime:  max(cmp.Or(c.HandoverTime, defaultHandoverTime), 0),
		keep:          c.Keep,
		keepMax:       cmp.Or(c.KeepMax, defaultKeepMax),
		maxWaiters:    c.MaxWaiters,
		maxNames:      c.MaxNames,
	}}
	if c.Connector == nil {
		cfg.User = c.User
	}
	cfg.CreatorOnly = c.ACL == aclCreator || c.ACL == "" && cfg.User != ""
	return cfg, cfg.check()
}

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
	within := func(d time.Duration) error {
		if d < least || d > maxDuration {
			return fmt.Errorf("want from %v to %v", least, maxDuration)
		}
		return nil
	}
	parse := func(v string) (time.Duration, error) {
		d, err := time.ParseDuration(v)
		if err != nil {
			return 0, errors.New("want a duration such as 10s or 1500ms")
		}
		return d, nil
	}
	return newKey(field, parse, within)
}

func intKey(least, most int, field func(*Config) *int) key {
	within := func(n int) error {
		if n < least || n > most {
			return fmt.Errorf("want a number from %d to %d", least, most)
		}
		return nil
	}
	parse := func(v string) (int, error) {
		n, err := strconv.Atoi(v)
		if err != nil {
			return 0, errors.New("want a number")
		}
		return n, nil
	}
	return newKey(field, parse, within)
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

// check checks the root, and the settings that depend on each other.
func (c *config) check() error {
	if err := checkRoot(c.Root); err != nil {
		return err
	}
	if err := c.CheckTimeout(c.SessionTimeout, "session_timeout"); err != nil {
		return fmt.Errorf("key \"session_timeout\": %w", err)
	}
	if c.keep > 0 && (c.handoverLimit == 0 || c.handoverTime == 0) {
		return errors.New("key \"keep\" needs hand-over: raise handover_limit and handover_time above 0, or leave keep out")
	}
	return nil
}

// checkRoot refuses a root that is not a plain absolute path below "/".
func checkRoot(root string) error {
	if !strings.HasPrefix(root, "/") || root == "/" {
		return fmt.Errorf("root %q: want an absolute path below \"/\", such as %s", root, defaultRoot)
	}
	for segment := range strings.SplitSeq(root[1:], "/") {
		if err := queue.CheckSegment(segment); err != nil {
			return fmt.Errorf("root %q: %w", root, err)
		}
		if strings.Contains(segment, "%") {
			return fmt.Errorf("root %q: percent signs are not allowed, because they are not decoded", root)
		}
		if r, ok := queue.RefusedRune(segment); ok {
			return fmt.Errorf("root %q: ZooKeeper does not allow the character %U", root, r)
		}
	}
	if root == "/zookeeper" || strings.HasPrefix(root, "/zookeeper/") {
		return fmt.Errorf("root %q: /zookeeper belongs to the servers: use another root", root)
	}
	return nil
}

// useHooks sets the hooks that sessions call.
func (c *config) useHooks() {
	if f := c.hooks.Operation; f != nil {
		c.Operation = func(ctx context.Context, op session.Operation) (context.Context, func(error)) {
			return f(ctx, OperationEvent(op))
		}
	}
	if f := c.hooks.Session; f != nil {
		c.Changed = func(s session.State) { f(SessionEvent(s)) }
	}
}
