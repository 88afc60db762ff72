package sessiondir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Open returns a connector whose sessions have files in a directory, so that other processes can
// end them when this one dies. While the connector is open, it does the same for the sessions of others
// of the same ensemble: see the package's documentation. Without a path it returns c, and also if the
// path is optional and not usable. If it fails, it closes c.
func Open(c driver.Connector, s Settings) (driver.Connector, error) {
	if s.Path == "" {
		return c, nil
	}
	path, optional := strings.CutPrefix(s.Path, Optional)
	if optional {
		s.Path, s.Log = path, func() *slog.Logger { return slog.New(slog.DiscardHandler) }
	}
	k, err := open(c, s)
	switch {
	case err == nil:
		return k, nil
	case optional:
		return c, nil
	}
	_ = c.Close()
	return nil, err
}

func open(c driver.Connector, s Settings) (*connector, error) {
	closer, ok := driver.CloserOf(c)
	if !ok {
		return nil, fmt.Errorf("session directory %s: the driver cannot end the sessions of other processes", s.Path)
	}
	d, err := openDirectory(s.Path, syscall.Fstatfs)
	if err != nil {
		return nil, err
	}
	me, err := self()
	if err != nil {
		d.close()
		return nil, fmt.Errorf("session directory %s: this process cannot be identified: %w", s.Path, err)
	}
	k := &connector{Connector: c, closer: closer, ensemble: ensembleOf(s.URL), settings: s, me: me}
	k.useLocked(d)
	return k, nil
}

// useLocked makes d the directory, and watches it.
func (c *connector) useLocked(d *directory) {
	key := c.ensemble.key()
	r := newReaper(d, c.me, c.settings.Log, func(e Ensemble) (driver.SessionCloser, error) {
		if e.key() != key {
			return nil, errors.New("its session belongs to other servers than its name")
		}
		return c.closer, nil
	}, c.settings.Reaped)
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.dirs = append(c.dirs, d)
	c.wg.Go(func() { r.stand(ctx, key) })
}

// keep writes the file of a session. If the directory was removed, or replaced by another one, keep opens
// it again.
func (c *connector) keep(rec record) (*file, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.dirs[len(c.dirs)-1]
	if d.replaced() {
		var err error
		if d, err = openDirectory(c.settings.Path, syscall.Fstatfs); err != nil {
			return nil, err
		}
		c.stop()
		c.useLocked(d)
	}
	rec.Directory = d.path
	return d.keep(rec)
}

// connector is a driver.Connector whose sessions have files.
type connector struct {
	driver.Connector
	closer   driver.SessionCloser
	ensemble Ensemble
	settings Settings
	me       process

	mu   sync.Mutex
	dirs []*directory       // guarded by mu; the last one is in use, files of sessions may be in all
	stop context.CancelFunc // guarded by mu; ends the watch of the last one
	wg   sync.WaitGroup
}

// Unwrap returns the driver's connector.
func (c *connector) Unwrap() driver.Connector { return c.Connector }

// Connect implements driver.Connector. The session has its file when Connect returns. If the file cannot
// be written, the session is used without one: its locks are then free when it expires.
func (c *connector) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	s, err := c.Connector.Connect(ctx, timeout)
	if err != nil {
		return nil, err
	}
	cred, ok := driver.CredentialsOf(s)
	var k *file
	if err = errors.New("the driver does not show the credentials of its sessions"); ok {
		k, err = c.keep(record{
			Ensemble: c.ensemble,
			Session:  cred.ID, Password: []byte(cred.Password.Reveal()), Timeout: cred.Timeout,
			LossDelay: c.settings.LossDelay, Process: c.me,
		})
	}
	if err != nil {
		c.settings.Log().Warn("zklock: a session has no file in the session directory: its locks are not free at once if this process dies",
			"directory", c.settings.Path, "session", fmt.Sprintf("%#x", uint64(s.ID())), "error", err)
		return s, nil
	}
	return &session{Session: s, file: k, log: c.settings.Log}, nil
}

// Close implements driver.Connector. Sessions that are open keep their files, and no process ends
// them while this one lives.
func (c *connector) Close() error {
	c.mu.Lock()
	c.stop()
	c.mu.Unlock()
	c.wg.Wait()
	err := c.Connector.Close()
	for _, d := range c.dirs {
		d.close()
	}
	return err
}

// session is a driver.Session with a file.
type session struct {
	driver.Session
	file *file
	log  func() *slog.Logger
	once sync.Once
}

// Unwrap returns the driver's session.
func (s *session) Unwrap() driver.Session { return s.Session }

// Close implements driver.Session. If the ensemble does not confirm the end, the client that watches
// the directory ends the session later.
func (s *session) Close(ctx context.Context) error {
	err := s.Session.Close(ctx)
	s.once.Do(func() {
		left := s.file.giveUp
		if err == nil {
			left = s.file.remove
		}
		if lost := left(); lost != nil {
			s.log().Warn("zklock: the file of a session that is over stays in the session directory", "file", s.file.name, "error", lost)
		}
	})
	return err
}
