package cli

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/zklock/go-zklock/internal/sessiondir"
	"github.com/zklock/go-zklock/zklock"
)

// runSession is the session timeout of zklock commands that run another command, and of doctor, if the URL sets
// none: the library's default. With much less, a session could expire while the servers elect a leader, and zklock
// would then end the other command.
const runSession = 30 * time.Second

// config returns the settings of the URL of the ensemble.
func (a *app) config() (zklock.Config, error) {
	for _, text := range []string{a.url, a.getenv(urlEnv)} {
		if text != "" {
			cfg, err := zklock.ParseURL(text)
			if err != nil {
				return zklock.Config{}, fail(exitConfiguration, err)
			}
			return cfg, nil
		}
	}
	return zklock.Config{}, fail(exitConfiguration, errors.New("there is no URL of an ensemble: set ZKLOCK_URL or --url, such as zk://host:2181/zklock"))
}

// wrapping returns the settings for a command that runs another one.
func (a *app) wrapping() (zklock.Config, error) {
	cfg, err := a.config()
	cfg.SessionTimeout = cmp.Or(cfg.SessionTimeout, runSession)
	if cfg.Scheme != "mem" { // an ensemble in memory ends with this process
		cfg.SessionDir = cmp.Or(cfg.SessionDir, sessiondir.Optional+a.sessionDir())
	}
	return cfg, err
}

// sessionDir returns the session directory of a command that runs another one if the URL sets none. It is
// the same for all of them that a user runs, so that each one frees the locks of those that were
// killed.
func (a *app) sessionDir() string {
	dir := a.getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(dir) {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "zklock-"+strconv.Itoa(os.Getuid()))
}

// client opens a client.
func (a *app) client(cfg zklock.Config, opts ...zklock.Option) (*zklock.Client, error) {
	c, err := a.open(cfg, append([]zklock.Option{zklock.WithLogger(a.messages.logger())}, opts...)...)
	if err != nil {
		return nil, fail(exitConfiguration, err)
	}
	return c, nil
}

// reader opens a client for commands that only read, and for release: they do not create the
// root.
func (a *app) reader(opts ...zklock.Option) (*zklock.Client, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	cfg.RequireRoot = true
	return a.client(cfg, opts...)
}
