package sessiondir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
)

// file is a session's file in the process that uses the session. The process holds its flock.
type file struct {
	dir  *directory
	f    *os.File
	name string
}

// held are the files of this process, for Held.
var (
	heldMu sync.Mutex
	held   = make(map[*file]struct{}) // guarded by heldMu
)

// random returns a part of a name that no other file has.
func random() string { return strings.ToLower(rand.Text()[:12]) }

// keep writes the file of a session. When it returns, the file is complete and locked.
func (d *directory) keep(r record) (_ *file, err error) {
	f, unnamed, err := d.create()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = d.root.Remove(unnamed)
			_ = f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	st := info.Sys().(*syscall.Stat_t)
	r.Device, r.Inode = uint64(st.Dev), st.Ino // Dev has 32 bits on some processors
	data, err := r.encode()
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(data); err != nil {
		return nil, reason(err)
	}
	if err := d.root.Rename(unnamed, r.name()); err != nil {
		return nil, errors.Unwrap(err)
	}
	k := &file{dir: d, f: f, name: r.name()}
	heldMu.Lock()
	held[k] = struct{}{}
	heldMu.Unlock()
	return k, nil
}

// remove removes the file: the session has ended.
func (k *file) remove() error {
	err := k.dir.root.Remove(k.name)
	k.release()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the directory was removed
	}
	return err
}

// giveUp leaves the session to the client that watches: this process uses it no longer, and does not know
// whether it has ended.
func (k *file) giveUp() error {
	err := k.dir.root.Rename(k.name, strings.TrimSuffix(k.name, suffixLive)+suffixOver)
	k.release()
	return err
}

func (k *file) release() {
	heldMu.Lock()
	delete(held, k)
	heldMu.Unlock()
	_ = k.f.Close()
}

// Held returns new descriptors of the files of all sessions of this process. A process that has them holds their
// flocks together with this one: their sessions are not ended before the last of them
// is closed. The caller closes them.
func Held() (files []*os.File, err error) {
	heldMu.Lock()
	defer heldMu.Unlock()
	for k := range held {
		f, dupErr := dup(k.f)
		if dupErr != nil {
			for _, f := range files {
				_ = f.Close()
			}
			return nil, fmt.Errorf("session file %s: %w", k.name, dupErr)
		}
		files = append(files, f)
	}
	return files, nil
}

// dup returns another descriptor of an open file, which programs that this process starts do not
// inherit by themselves.
func dup(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, errno := uintptr(0), syscall.Errno(0)
	if err := raw.Control(func(old uintptr) {
		fd, _, errno = syscall.Syscall(syscall.SYS_FCNTL, old, syscall.F_DUPFD_CLOEXEC, 0)
	}); err != nil {
		return nil, err
	}
	if errno != 0 {
		return nil, errno
	}
	return os.NewFile(fd, f.Name()), nil
}
