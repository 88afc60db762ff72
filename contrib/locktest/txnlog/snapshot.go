package txnlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// Snapshot returns the tree of the oldest snapshot of a server's folder from which its logs go on, and no tree if there is
// none that is whole: then the logs must begin with the first transaction. The folder is the server's dataDir. A snapshot is
// written while transactions go on, so it may have some that are newer than its zxid; they change nothing when they are
// applied again. Compressed snapshots are left out.
func Snapshot(dir string, first int64) (*Tree, error) {
	all, err := files(dir, "snapshot.")
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.zxid+1 < first {
			continue
		}
		t, err := s.tree()
		if !errors.Is(err, errNotWhole) && !errors.Is(err, io.ErrUnexpectedEOF) { // it was being written when the server was killed
			return t, err
		}
	}
	return nil, nil
}

// First returns the zxid of the oldest transaction in the logs of a folder.
func First(dir string) (int64, error) {
	for t, err := range Transactions(dir, 0) {
		return t.Zxid, err
	}
	return 0, fmt.Errorf("%s has no transactions: %w", dir, fs.ErrNotExist)
}

// tree reads a snapshot.
func (s file) tree() (*Tree, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	if err := readHeader(in, snapshotMagic); err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	r := &record{r: in}
	r.list(func() { // sessions
		r.int64()
		r.int32()
	})
	r.list(func() { // access lists
		r.int64()
		r.acl()
	})
	t := &Tree{Zxid: s.zxid}
	for {
		p := r.string()
		if r.err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, r.err)
		}
		if p == "/" {
			return t, nil
		}
		z := &Znode{Path: p, Data: r.bytes()}
		r.int64() // its access list
		z.Zxid = r.int64()
		r.int64() // of the newest change
		z.Created = time.UnixMilli(r.int64())
		r.take(8 + 3*4) // time of the newest change, versions
		z.Owner = owner(r.int64())
		r.int64()                    // of the newest change of its children
		if p != "" && r.err == nil { // "" is the root
			t.add(z)
		}
	}
}

// owner returns the session of an ephemeral znode, 0 for what servers put there of containers and of znodes that time out.
func owner(field int64) int64 {
	const container, ttl = -1 << 63, 0xff << 56
	if field == container || uint64(field)&uint64(ttl) == uint64(ttl) {
		return 0
	}
	return field
}
