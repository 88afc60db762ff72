package zklock

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/local"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// defaultRoot is the root of a URL without one. coreKeys has the other defaults.
const defaultRoot = "/zklock"

// Config has the settings of a [Client]: what a URL says, in typed fields. A field with its
// zero value has the default. So a Config can be a literal, as it can be that of [ParseURL],
// and the two behave alike: [OpenConfig] checks every Config. docs/urls.md says what each
// setting means, under its key.
type Config struct {
	Scheme         string            // the driver, and with it the ensemble: zk, zks or mem
	Hosts          []string          // the ensemble's servers, as in a URL: each a host with or without a port
	User           string            // the user as which sessions authenticate; "" for none
	Password       driver.Secret     // the password of User
	DriverSettings map[string]string // the settings of the driver, such as tls_ca, by their keys

	// Connector, if it is not nil, opens the sessions instead of a driver, as in tests with
	// memdriver. The fields above then have no effect. The Client owns the connector:
	// Client.Close closes it.
	Connector driver.Connector

	// Root is the path of the root, the znode that has the client's locks below it; "" means
	// /zklock. It may have characters that a root in a URL cannot have.
	Root string

	SessionTimeout  time.Duration // the key session_timeout, 30s by default
	TickTime        time.Duration // the key tick_time, 3s by default
	ConnectTimeout  time.Duration // the key connect_timeout, 10s by default
	LossDelay       time.Duration // the key loss_delay
	PoolMaxSessions int           // the key pool_max_sessions, 2 by default
	PoolMaxLifetime time.Duration // the key pool_max_lifetime; 0: sessions are not replaced because of their age
	JuteMaxbuffer   int           // the key jute_maxbuffer, 1048575 by default
	HandoverLimit   int           // the key handover_limit, 16 by default; negative for the 0 of a URL: no hand-over
	HandoverTime    time.Duration // the key handover_time, 100ms by default; negative for the 0 of a URL: no hand-over
	Keep            time.Duration // the key keep; 0: no name is kept
	KeepMax         int           // the key keep_max, 1000 by default
	Dialect         string        // the key dialect: zklock, which is the default, curator, zk, kazoo or latch
	MaxWaiters      int           // the key max_waiters; 0: no limit
	MaxContenders   int           // the key max_contenders; 0: no limit
	MaxNames        int           // the key max_names; 0: no limit
	SessionDir      string        // the key session_dir; "": none
	RequireRoot     bool          // create_root=false: the client does not make the root if it is missing
	DeadlockTimeout time.Duration // the key deadlock_timeout, 1s by default; negative for the 0 of a URL: deadlocks are not looked for
	ACL             string        // the key acl: creator, open or a list; the default is creator for a client with a User or SASL, else open
}

// complete checks each setting, and fills in the defaults: afterwards 0 means never, or no limit.
func (c *Config) complete() (clientSettings, error) {
	for _, name := range slices.Sorted(maps.Keys(coreKeys)) {
		if err := coreKeys[name].complete(c); err != nil {
			return clientSettings{}, fmt.Errorf("key %q: %w", name, err)
		}
	}
	dialect, _ := queue.ParseDialect(c.Dialect)
	host, _ := os.Hostname() // "" if the system does not know one
	cfg := clientSettings{
		QueueSettings: local.QueueSettings{Place: place.NodeSettings{
			Settings: session.Settings{
				Root:            cmp.Or(c.Root, defaultRoot),
				SessionTimeout:  c.SessionTimeout,
				TickTime:        c.TickTime,
				ConnectTimeout:  c.ConnectTimeout,
				LossDelay:       c.LossDelay,
				PoolMaxSessions: c.PoolMaxSessions,
				PoolMaxLifetime: c.PoolMaxLifetime,
				JuteMaxbuffer:   c.JuteMaxbuffer,
				Jitter:          session.Jitter,
			},
			MaxContenders: c.MaxContenders,
			KeepAfter:     place.KeepAfter,
			Host:          host,
			PID:           os.Getpid(),
			CreateRoot:    !c.RequireRoot,
			Dialect:       dialect,
		},
			HandoverLimit: c.HandoverLimit, HandoverTime: c.HandoverTime, Keep: c.Keep,
			KeepMax: c.KeepMax, MaxWaiters: c.MaxWaiters, MaxNames: c.MaxNames,
		},
		deadlockTimeout: c.DeadlockTimeout,
	}
	if c.Connector == nil {
		cfg.servers = c.Scheme + "://" + strings.Join(c.Hosts, ",")
	}
	if err := checkRoot(cfg.Place.Root); err != nil {
		return clientSettings{}, err
	}
	if err := cfg.Place.CheckTimeout(cfg.Place.SessionTimeout, "session_timeout"); err != nil {
		return clientSettings{}, fmt.Errorf("key \"session_timeout\": %w", err)
	}
	if c.SessionDir != "" && c.Connector != nil {
		return clientSettings{}, errors.New("key \"session_dir\" needs a driver that the client opens, and not a Connector: its files name the servers")
	}
	if c.Keep > 0 && (c.HandoverLimit == 0 || c.HandoverTime == 0) {
		return clientSettings{}, errors.New("key \"keep\" needs hand-over: raise handover_limit and handover_time above 0, or leave keep out")
	}
	return cfg, nil
}

// identify sets the access list, and a text about the client's identity.
func (c *Config) identify(cfg *clientSettings) {
	access := "creator"
	bySASL := c.Connector == nil && (c.DriverSettings["sasl"] != "" || len(cfg.driverOptions) > 0)
	switch {
	case bySASL:
		cfg.Place.Identity = strings.TrimPrefix("as "+c.User+", authenticated by SASL", "as , ")
	case c.Connector == nil && c.User != "":
		cfg.Place.Identity = fmt.Sprintf("as user %q (or the password is wrong: ZooKeeper accepts any password, and compares it with access lists only)", c.User)
	default:
		cfg.Place.Identity, access = "without a user in the URL", "open"
	}
	cfg.Place.ACL, _ = driver.ParseACL(cmp.Or(c.ACL, access)) // checked by complete
	cfg.Place.Identity += c.strangers(cfg.Place.ACL, bySASL)
}

// strangers returns a hint at an access list whose identities may not be this client's: it cannot use the root that it
// makes then. Identities of Kerberos have a realm, unless the servers remove it.
func (c *Config) strangers(acl []driver.ACL, bySASL bool) (hint string) {
	for _, a := range acl {
		switch {
		case a.Scheme == "sasl" && bySASL && c.DriverSettings["sasl"] != "digest-md5" && !strings.Contains(a.ID, "@"):
			return fmt.Sprintf(" (acl of this client names sasl:%s, without a realm: unless the servers remove realms, no client has this identity, and none can use a root that was made so: write sasl:%s%%40REALM, and correct the list of the root)", a.ID, a.ID)
		case a.Scheme != "auth" && a.Scheme != "world":
			hint = " (if acl of this client does not name its own identity, it cannot use a root that it has made)"
		}
	}
	return hint
}

// checkRoot refuses a root that is not a plain absolute path below "/".
func checkRoot(root string) error {
	err := rootFault(root)
	switch {
	case err == nil:
		return nil
	case strings.Contains(root, "://"):
		return errors.New("the Root of the Config is a URL: pass that to ParseURL or Open")
	case !strings.HasPrefix(root, "/") || strings.ContainsAny(root, "@?&=:"): // the rest of a URL, perhaps
		return fmt.Errorf("root (not shown: it may have a password in it): %w", err)
	}
	return fmt.Errorf("root %q: %w", root, err)
}

// rootFault returns what is wrong with a root.
func rootFault(root string) error {
	if !strings.HasPrefix(root, "/") || root == "/" {
		return fmt.Errorf("want an absolute path below \"/\", such as %s", defaultRoot)
	}
	for segment := range strings.SplitSeq(root[1:], "/") {
		if err := queue.CheckSegment(segment); err != nil {
			return err
		}
		if strings.Contains(segment, "%") {
			return errors.New("percent signs are not allowed, because they are not decoded")
		}
		if r, ok := queue.RefusedRune(segment); ok {
			return fmt.Errorf("ZooKeeper does not allow the character %U", r)
		}
	}
	if root == "/zookeeper" || strings.HasPrefix(root, "/zookeeper/") {
		return errors.New("/zookeeper belongs to the servers: use another root")
	}
	return nil
}
