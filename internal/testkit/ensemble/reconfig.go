package ensemble

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Add starts one more server, in an ensemble with Config.Reconfigurable. It follows the leader
// and has no vote until a client has added its Member to the configuration. Add returns
// when the server runs: until it belongs to the configuration, it may refuse clients.
func (e *Ensemble) Add() (*Server, error) {
	if !e.config.Reconfigurable || !e.config.DirectQuorum {
		return nil, errors.New("ensemble: add a server: it needs Reconfigurable and DirectQuorum")
	}
	p, err := pickPorts()
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	index := len(e.servers)
	s := &Server{ensemble: e, index: index, ports: p, dir: filepath.Join(e.dir, fmt.Sprintf("server%d", index+1))}
	e.servers = append(e.servers, s)
	e.mu.Unlock()
	if err := s.writeConfig(); err != nil {
		return nil, err
	}
	return s, s.Start()
}

// Rejoin starts a server that was removed from the configuration and stopped. It is then a new
// machine with the same addresses: without data, and without a vote until a client has added
// its Member again.
func (s *Server) Rejoin() error {
	if s.Running() {
		return fmt.Errorf("ensemble: rejoin %v: it is running", s)
	}
	old, err := filepath.Glob(filepath.Join(s.dir, "zoo.cfg*"))
	if err != nil {
		return err
	}
	for _, path := range append(old, filepath.Join(s.dir, "data")) {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	if err := s.writeConfig(); err != nil {
		return err
	}
	return s.Start()
}

// ID returns the server's id in the configuration of the ensemble.
func (s *Server) ID() string { return strconv.Itoa(s.id()) }

// Member returns the server's line of the configuration. A client adds it to an ensemble with
// Config.Reconfigurable.
func (s *Server) Member() string {
	return fmt.Sprintf("server.%d=127.0.0.1:%d:%d:participant;127.0.0.1:%d", s.id(), s.ports.quorum, s.ports.election, s.ports.client)
}
