package txnlog

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Start returns the tree with which the logs of a server's folder begin: that of the oldest snapshot from which they go on,
// or an empty one if there is none. Then a znode that is older than the logs is missing in it. The folder is the server's
// dataDir; if its logs are elsewhere, copy both into one folder. A snapshot is written while transactions go on, so the
// tree may have some that are newer than its Zxid; they change nothing when they are applied again. A snapshot that is
// compressed with snappy is not read. If there is no other one, the error is an [*UnreadableError].
func Start(dir string) (*Tree, error) {
	first := int64(0)
	for t, err := range Transactions(dir, 0) {
		if err != nil {
			return nil, err
		}
		first = t.Zxid
		break
	}
	all, err := files(dir, "snapshot.")
	if err != nil {
		return nil, err
	}
	if first <= 1 {
		return new(Tree), nil // nothing is older
	}
	var unreadable error
	for _, s := range all {
		if s.zxid+1 < first {
			continue
		}
		if s.compression != "" && s.compression != gz {
			unreadable = &UnreadableError{s.path}
			continue
		}
		t, err := s.tree()
		if !errors.Is(err, errNotWhole) && !errors.Is(err, io.ErrUnexpectedEOF) { // it was being written when the server was killed
			return t, err
		}
	}
	if unreadable != nil {
		return nil, unreadable
	}
	return &Tree{Zxid: max(first-1, 0)}, nil
}

// gz is how the names of snapshots end that a server has compressed with gzip, for snapshot.compression.method=gz.
const gz = "gz"

// UnreadableError is the error of a folder whose logs go on from a snapshot in a form that is not read.
type UnreadableError struct {
	Path string // of the snapshot
}

// Error implements error.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("%s is compressed, and not with gzip: copy the folder without it, and znodes that are older than the logs are missing; or set snapshot.compression.method=gz on the server, and copy its files after its next snapshot", e.Path)
}

// tree reads a snapshot.
func (s file) tree() (*Tree, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	if s.compression == gz {
		plain, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, cut(err))
		}
		in = bufio.NewReaderSize(plain, 1<<16)
	}
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
