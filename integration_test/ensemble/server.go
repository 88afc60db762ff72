package ensemble

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// stopTimeout is how long Stop waits for an orderly end.
const stopTimeout = 10 * time.Second

// logTail is how much of a server's log goes into an error.
const logTail = 4 << 10

// Server is one server of an ensemble. Its methods are safe for concurrent use.
type Server struct {
	ensemble *Ensemble
	index    int
	dir      string
	ports    ports

	mu     sync.Mutex
	proc   *process // the newest one; nil before the first Start; guarded by mu
	frozen bool     // guarded by mu
}

// errNotRunning is the answer to a request that needs a running server.
var errNotRunning = errors.New("not running")

// Index is the server's place in Servers.
func (s *Server) Index() int { return s.index }

// id is the server's id in ZooKeeper's configuration.
func (s *Server) id() int { return s.index + 1 }

// String names the server as messages do.
func (s *Server) String() string { return fmt.Sprintf("server %d (%s)", s.id(), s.Addr()) }

// Addr is the address for clients. It stays the same over restarts.
func (s *Server) Addr() string { return local(s.ports.client) }

// SecureAddr is the address for clients that use TLS; it answers only in an
// ensemble with Config.TLS.
func (s *Server) SecureAddr() string { return local(s.ports.secure) }

// PID is the process id of the running server, or 0.
func (s *Server) PID() int {
	p, err := s.process()
	if err != nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Running reports whether the server's process exists, frozen or not.
func (s *Server) Running() bool {
	_, err := s.process()
	return err == nil
}

// Frozen reports whether the server is frozen.
func (s *Server) Frozen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frozen
}

// Start starts the server, with the data it had, and does not wait for it to
// serve: see AwaitServing. Starting a running server is an error.
func (s *Server) Start() error {
	in, err := Find()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil && !s.proc.over() {
		return fmt.Errorf("ensemble: start %v: it is running", s)
	}
	p, err := startProcess(in.Java, s.command(in), log)
	if err != nil {
		return fmt.Errorf("ensemble: start %v: %w", s, err)
	}
	s.proc, s.frozen = p, false
	return nil
}

// Kill ends the server at once (SIGKILL) and waits for its end. The server may
// be frozen, or down already.
func (s *Server) Kill() {
	s.mu.Lock()
	p := s.proc
	s.frozen = false
	s.mu.Unlock()
	if p != nil {
		p.kill()
	}
}

// Stop ends the server in good order (SIGTERM) and waits for its end.
func (s *Server) Stop() error {
	p, err := s.process()
	if err != nil {
		return fmt.Errorf("ensemble: stop %v: %w", s, err)
	}
	p.ended.Store(true)
	if err := p.terminate(); err != nil {
		return fmt.Errorf("ensemble: stop %v: %w", s, err)
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		p.kill()
		return fmt.Errorf("ensemble: stop %v: it took more than %v and was killed", s, stopTimeout)
	}
}

// Freeze stops the server's process where it is (SIGSTOP): its connections
// stay open and nothing is answered.
func (s *Server) Freeze() error { return s.setFrozen(true) }

// Thaw lets a frozen server go on (SIGCONT).
func (s *Server) Thaw() error { return s.setFrozen(false) }

func (s *Server) setFrozen(frozen bool) error {
	p, err := s.process()
	if err == nil && frozen {
		err = p.freeze()
	} else if err == nil {
		err = p.thaw()
	}
	if err != nil {
		return fmt.Errorf("ensemble: freeze or thaw %v: %w", s, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = frozen
	return nil
}

// process is the running one.
func (s *Server) process() (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || s.proc.over() {
		return nil, errNotRunning
	}
	return s.proc, nil
}

func (s *Server) logPath() string { return filepath.Join(s.dir, "server.log") }

// Log returns the last lines the server has logged.
func (s *Server) Log() string {
	log, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	if len(log) > logTail {
		log = log[len(log)-logTail:]
		_, log, _ = bytes.Cut(log, []byte("\n"))
	}
	return strings.TrimRight(string(log), "\n")
}

// collided reports whether the server could not have one of its ports.
func (s *Server) collided() bool {
	log, err := os.ReadFile(s.logPath())
	return err == nil && (bytes.Contains(log, []byte("Address already in use")) || bytes.Contains(log, []byte("BindException")))
}
