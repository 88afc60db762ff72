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

// stopTimeout is how long Stop waits for the server's end before it kills the server.
const stopTimeout = 10 * time.Second

// logTail is how many bytes of a server's log go into an error.
const logTail = 4 << 10

// Server is one server of an ensemble. Its methods are safe for concurrent use.
type Server struct {
	ensemble *Ensemble
	index    int
	dir      string
	ports    ports
	given    string // the address of a server that runs already: see Running

	mu     sync.Mutex
	proc   *process // the newest process; nil before the first Start; guarded by mu
	frozen bool     // guarded by mu

	install     *Installation // for the next Start; nil: Find's; guarded by mu
	javaOptions []string      // guarded by mu; see SetJavaOptions
}

// errNotRunning is the error of operations that need a running server.
var errNotRunning = errors.New("not running")

// Index returns the server's index in Servers.
func (s *Server) Index() int { return s.index }

// id is the server's id in ZooKeeper's configuration.
func (s *Server) id() int { return s.index + 1 }

// String returns the server's id and address, for messages.
func (s *Server) String() string { return fmt.Sprintf("server %d (%s)", s.id(), s.Addr()) }

// Addr returns the address for clients. It stays the same over restarts.
func (s *Server) Addr() string {
	if s.given != "" {
		return s.given
	}
	return local(s.ports.client)
}

// SecureAddr returns the address for clients that use TLS. The server listens there only
// in an ensemble with Config.TLS.
func (s *Server) SecureAddr() string { return local(s.ports.secure) }

// PID returns the process id of the running server, or 0.
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

// Start starts the server with the data that it had before. It does not wait until the
// server serves: see AwaitServing. It returns an error if the server is running already,
// or cannot be started.
func (s *Server) Start() error {
	in, err := s.installation()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own descriptor
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil && !s.proc.over() {
		return fmt.Errorf("ensemble: start %v: it is running already", s)
	}
	p, err := startProcess(in.Java, s.command(in), log)
	if err != nil {
		return fmt.Errorf("ensemble: start %v: %w", s, err)
	}
	s.proc, s.frozen = p, false
	return nil
}

// Upgrade makes the next Start run another installation, with the data that the server has.
func (s *Server) Upgrade(to Installation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.install = &to
}

// SetJavaOptions makes the next Start add options for the Java machine to those of the Config, in place of
// those of an earlier call.
func (s *Server) SetJavaOptions(options ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.javaOptions = options
}

// installation returns what the next Start runs.
func (s *Server) installation() (Installation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.install != nil {
		return *s.install, nil
	}
	return Find()
}

// Kill ends the server at once (SIGKILL) and waits for its end. The server may be frozen,
// or may have ended already.
func (s *Server) Kill() {
	s.mu.Lock()
	p := s.proc
	s.frozen = false
	s.mu.Unlock()
	if p != nil {
		p.kill()
	}
}

// Stop ends the server by SIGTERM and waits for its end. It returns an error if the server
// is not running, or if it had to be killed after 10 seconds.
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
		return fmt.Errorf("ensemble: stop %v: it did not end within %v and was killed", s, stopTimeout)
	}
}

// Freeze suspends the server's process (SIGSTOP): its connections stay open, and it does
// not answer. Freeze returns an error if the server is not running.
func (s *Server) Freeze() error { return s.setFrozen(true) }

// Thaw lets a frozen server continue (SIGCONT). It returns an error if the server is not
// running.
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

// process returns the running process, or errNotRunning.
func (s *Server) process() (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || s.proc.over() {
		return nil, errNotRunning
	}
	return s.proc, nil
}

func (s *Server) logPath() string { return filepath.Join(s.dir, "server.log") }

// Log returns the last lines that the server has logged.
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

// Logged reports whether the server has logged a text since it was made, not only in the
// last lines.
func (s *Server) Logged(text string) bool {
	log, err := os.ReadFile(s.logPath())
	return err == nil && bytes.Contains(log, []byte(text))
}

// collided reports whether another process uses one of the server's ports.
func (s *Server) collided() bool {
	return s.Logged("Address already in use") || s.Logged("BindException")
}
