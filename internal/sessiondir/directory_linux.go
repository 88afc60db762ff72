package sessiondir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zklock/go-zklock/internal/oneline"
)

// directory is an open session directory. All files are opened relative to it, and a symbolic
// link in it is not used.
type directory struct {
	path string
	root *os.Root
	low  atomic.Int64 // a descriptor that is kept for a notifier; -1: none, or a notifier has it
}

// fileSystems are those on which a flock reaches all users of a file, by their magic numbers.
var fileSystems = map[int64]string{
	0x01021994: "tmpfs", 0xef53: "ext2, ext3 or ext4", 0x58465342: "xfs", 0x9123683e: "btrfs",
	0x794c7630: "overlayfs", 0x2fc12fc1: "zfs", 0xf2f52010: "f2fs",
}

// refused are the names of others, for the error.
var refused = map[int64]string{
	0x6969: "NFS", 0x65735546: "FUSE or virtiofs", 0x01021997: "9p", 0xff534d42: "CIFS", 0xfe534d42: "SMB", 0x517b: "SMB",
	0x00c36400: "Ceph", 0x01161970: "GFS2", 0x7461636f: "OCFS2", 0x0bd00bd0: "Lustre", 0x786f4256: "VirtualBox's shared folders",
	0x5346414f: "AFS", 0x73757245: "Coda", 0x47504653: "GPFS", 0x858458f6: "ramfs", 0x2011bab0: "exFAT", 0x4d44: "FAT",
}

// openDirectory opens a directory, and makes it if it is missing. It refuses one in which files
// could be read by another user, or on which a flock could mean nothing. fstatfs is that of package
// syscall, or another one in tests.
func openDirectory(path string, fstatfs func(int, *syscall.Statfs_t) error) (_ *directory, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("session directory %s: %w", path, err)
		}
	}()
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, reason(err)
	}
	named, err := os.Lstat(path)
	if err != nil {
		return nil, reason(err)
	}
	if named.Mode()&fs.ModeSymlink != 0 {
		return nil, errors.New("it is a symbolic link: name the directory itself")
	}
	if !named.IsDir() {
		return nil, errors.New("it is not a directory")
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, reason(err)
	}
	defer func() {
		if err != nil {
			_ = root.Close()
		}
	}()
	self, err := root.Open(".")
	if err != nil {
		return nil, reason(err)
	}
	defer self.Close()
	opened, err := self.Stat()
	if err != nil {
		return nil, reason(err)
	}
	if !os.SameFile(named, opened) {
		return nil, errors.New("it was replaced while it was opened")
	}
	if owner := opened.Sys().(*syscall.Stat_t).Uid; owner != uint32(os.Geteuid()) {
		return nil, fmt.Errorf("it belongs to user %d, and this process runs as user %d: use a directory of its own", owner, os.Geteuid())
	}
	if mode := opened.Mode().Perm(); mode != 0o700 {
		return nil, fmt.Errorf("it has mode %#o: other users must not read it, so give it mode 0700", mode)
	}
	var st syscall.Statfs_t
	if err := fstatfs(int(self.Fd()), &st); err != nil {
		return nil, fmt.Errorf("fstatfs: %w", err)
	}
	if kind := int64(uint32(st.Type)); fileSystems[kind] == "" {
		name := refused[kind]
		if name == "" {
			name = fmt.Sprintf("a file system of type %#x", kind)
		}
		return nil, fmt.Errorf("it is on %s, where a flock may not reach all users of a file: use a local directory, such as one below /run", name)
	}
	d := &directory{path: path, root: root}
	if err := d.tryLocks(); err != nil {
		return nil, err
	}
	_ = self.Close() // its number is the next one to be given
	d.low.Store(int64(reserve()))
	return d, nil
}

// reason returns the error inside a PathError: the path is known.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// tryLocks checks that a file which is locked cannot be locked again, not even by this process.
func (d *directory) tryLocks() error {
	f, name, err := d.create()
	if err != nil {
		return err
	}
	defer f.Close()
	defer d.root.Remove(name)
	second, err := d.open(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer second.Close()
	switch locked, err := lock(second); {
	case err != nil:
		return fmt.Errorf("flock: %w", err)
	case locked:
		return errors.New("a file that is locked can be locked again: its file system does not know flock")
	}
	return nil
}

// create makes a file that has no session's name yet, and locks it.
func (d *directory) create() (f *os.File, name string, err error) {
	name = prefixNew + random()
	f, err = d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, "", reason(err)
	}
	locked, err := lock(f)
	if err == nil && !locked {
		err = errors.New("a new file is locked already")
	}
	if err != nil {
		_ = d.root.Remove(name)
		_ = f.Close()
		return nil, "", fmt.Errorf("flock: %w", err)
	}
	return f, name, nil
}

// open opens a file, and does not wait for the other end of a FIFO. It may follow a symbolic link inside
// the directory: see removed.
func (d *directory) open(name string, flag int) (*os.File, error) {
	return d.root.OpenFile(name, flag|syscall.O_NONBLOCK, 0)
}

// lock takes the exclusive flock of a file if it is free. The kernel releases it when the last
// descriptor is closed that stems from this opening of the file.
func lock(f *os.File) (locked bool, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	controlled := raw.Control(func(fd uintptr) {
		for {
			if err = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EINTR {
				return
			}
		}
	})
	if err == syscall.EWOULDBLOCK {
		return false, controlled
	}
	return err == nil && controlled == nil, oneline.Join(err, controlled)
}

// names returns the names of the sessions' files of an ensemble; with key "" those of all. It removes
// files that a process has left before they had a name.
func (d *directory) names(key string) (names []string, err error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, reason(err)
	}
	defer f.Close()
	all, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		switch {
		case strings.HasPrefix(name, prefixNew):
			d.removeUnnamed(name)
		case isSession(name) && (key == "" || strings.HasPrefix(name, key+"-")):
			names = append(names, name)
		}
	}
	return names, nil
}

// unnamed is how long a file may be without a name. Its process needs a moment to write it.
const unnamed = time.Minute

// removeUnnamed removes a file that no process is about to name.
func (d *directory) removeUnnamed(name string) {
	f, err := d.open(name, os.O_RDONLY)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || time.Since(info.ModTime()) < unnamed {
		return
	}
	if free, _ := lock(f); free {
		_ = d.root.Remove(name)
	}
}

// read returns the record of a file that the caller has locked. The file must be what the owner's
// client has made: a regular file with one name, mode 0600, and the very inode in its record. read
// also returns the record of a copy, with errCopied.
func (d *directory) read(f *os.File, name string) (record, error) {
	info, err := f.Stat()
	if err != nil {
		return record{}, err
	}
	st := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return record{}, errors.New("it is not a regular file")
	case info.Mode().Perm() != 0o600 || st.Uid != uint32(os.Geteuid()):
		return record{}, fmt.Errorf("it has mode %#o and belongs to user %d, want mode 0600 and user %d", info.Mode().Perm(), st.Uid, os.Geteuid())
	case st.Nlink > 1:
		return record{}, errors.New("it has several names")
	}
	data, err := io.ReadAll(io.NewSectionReader(f, 0, maxRecord))
	if err != nil {
		return record{}, err
	}
	r, err := decode(data)
	if err != nil {
		return record{}, err
	}
	if r.Device != uint64(st.Dev) || r.Inode != st.Ino || name != r.name() && name != r.overName() {
		return r, errCopied
	}
	return r, nil
}

// removed reports whether the file has lost its name, or the name is another file's or a link.
func (d *directory) removed(f *os.File, name string) bool {
	mine, err := f.Stat()
	if err != nil {
		return true
	}
	named, err := d.root.Lstat(name)
	return err != nil || !os.SameFile(mine, named)
}

// replaced reports whether the directory's path is gone, or that of another directory.
func (d *directory) replaced() bool {
	named, err1 := os.Lstat(d.path)
	mine, err2 := d.root.Stat(".")
	return err1 != nil || err2 != nil || !os.SameFile(named, mine)
}

// close releases the directory.
func (d *directory) close() {
	_ = d.root.Close()
	if low := d.low.Swap(-1); low >= 0 {
		_ = syscall.Close(int(low)) // a directory: nothing is lost
	}
}
