package ensemble

import (
	"fmt"
	"os"
	"path/filepath"
)

// versionDir is the folder of a server's snapshots and transaction logs, below its data folder.
const versionDir = "version-2"

// Data returns the folder of the server's snapshots and transaction logs.
func (s *Server) Data() string { return filepath.Join(s.dir, "data", versionDir) }

// Wipe removes the data of a server that does not run. Its next Start begins with an empty one, as
// after its volume was removed.
func (s *Server) Wipe() error {
	if s.Running() {
		return fmt.Errorf("ensemble: wipe %v: it is running", s)
	}
	return os.RemoveAll(s.Data())
}

// Backup copies the data of a server that does not run to the folder to, which must not exist.
func (s *Server) Backup(to string) error {
	if s.Running() {
		return fmt.Errorf("ensemble: back up %v: it is running", s)
	}
	return os.CopyFS(to, os.DirFS(s.Data()))
}

// Restore replaces the data of a server that does not run by those that Backup has copied.
func (s *Server) Restore(from string) error {
	if err := s.Wipe(); err != nil {
		return err
	}
	return os.CopyFS(s.Data(), os.DirFS(from))
}

// SetEpoch makes a server of several that does not run believe that the ensemble has had leaders up to
// epoch. The next leader's transactions have a greater one.
func (s *Server) SetEpoch(epoch int64) error {
	if s.Running() {
		return fmt.Errorf("ensemble: set the epoch of %v: it is running", s)
	}
	dir := s.Data()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"acceptedEpoch", "currentEpoch"} {
		if err := os.WriteFile(filepath.Join(dir, name), fmt.Append(nil, epoch), 0o644); err != nil {
			return err
		}
	}
	return nil
}
