package txnlog

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	logMagic      = 0x5a4b4c47 // ZKLG
	snapshotMagic = 0x5a4b534e // ZKSN
	fileVersion   = 2
	headerLen     = 4 + 4 + 8 // magic, version, database
	maxEntry      = 256 << 20 // above each jute.maxbuffer that a server would work with
	endOfEntry    = 'B'
)

// file is a log or a snapshot.
type file struct {
	path string
	zxid int64 // in its name: of the first transaction of a log, of the last one before a snapshot began

	compression string // the end of a snapshot's name: gz or snappy; "": none
}

// files returns the files of a folder whose names begin with a prefix, in the order of their zxids. The folder is a
// server's dataDir, dataLogDir or snapDir, or version-2 in it.
func files(dir, prefix string) ([]file, error) {
	if inner := filepath.Join(dir, "version-2"); isDir(inner) {
		dir = inner
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []file
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), prefix)
		digits, compression, _ := strings.Cut(digits, ".")
		if zxid, err := strconv.ParseUint(digits, 16, 63); ok && err == nil {
			found = append(found, file{filepath.Join(dir, e.Name()), int64(zxid), compression})
		}
	}
	slices.SortFunc(found, func(a, b file) int { return cmp.Compare(a.zxid, b.zxid) })
	return found, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Transactions returns the transactions of a server's folder that are newer than a zxid, in their order. The folder is
// the server's dataLogDir, if it has one, or its dataDir. A log ends where its checksums do: at the entry that the server
// was writing when it was killed, or when the file was copied. An error is the last value: a file that cannot be read,
// or is none of ZooKeeper's.
func Transactions(dir string, after int64) iter.Seq2[Txn, error] {
	return func(yield func(Txn, error) bool) {
		logs, err := files(dir, "log.")
		if err == nil && len(logs) == 0 {
			err = fmt.Errorf("%s has no transaction logs: name a server's dataLogDir, or its dataDir: %w", dir, fs.ErrNotExist)
		}
		if err != nil {
			yield(Txn{}, err)
			return
		}
		for i, l := range logs {
			if i+1 < len(logs) && logs[i+1].zxid <= after+1 {
				continue // all of it is older
			}
			for t, err := range l.transactions() {
				if err != nil {
					yield(Txn{}, fmt.Errorf("%s: %w", l.path, err))
					return
				}
				if t.Zxid <= after {
					continue
				}
				if after = t.Zxid; !yield(t, nil) {
					return
				}
			}
		}
	}
}

// transactions returns those of one file.
func (l file) transactions() iter.Seq2[Txn, error] {
	return func(yield func(Txn, error) bool) {
		f, err := os.Open(l.path)
		if err != nil {
			yield(Txn{}, err)
			return
		}
		defer f.Close()
		r := bufio.NewReaderSize(f, 1<<16)
		if err := readHeader(r, logMagic); err != nil {
			if !errors.Is(err, io.ErrUnexpectedEOF) { // the server has just made it
				yield(Txn{}, err)
			}
			return
		}
		for {
			entry, err := nextEntry(r)
			if entry == nil || err != nil {
				if err != nil {
					yield(Txn{}, err)
				}
				return
			}
			t, err := parse(entry)
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// readHeader reads the header of a file.
func readHeader(r io.Reader, magic uint32) error {
	var header [headerLen]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return cut(err)
	}
	if got, version := binary.BigEndian.Uint32(header[:]), binary.BigEndian.Uint32(header[4:]); got != magic || version != fileVersion {
		return fmt.Errorf("the file begins with %08x, version %d, which is not ZooKeeper's %08x, version %d", got, version, magic, fileVersion)
	}
	return nil
}

// nextEntry returns the next entry, nil at the end of the log: at zeros, with which servers fill logs ahead, or at an
// entry that is not whole.
func nextEntry(r io.Reader) ([]byte, error) {
	var head [8 + 4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, ended(err)
	}
	sum, n := binary.BigEndian.Uint64(head[:]), int32(binary.BigEndian.Uint32(head[8:]))
	if n <= 0 || n > maxEntry {
		return nil, nil
	}
	entry := make([]byte, n+1)
	if _, err := io.ReadFull(r, entry); err != nil {
		return nil, ended(err)
	}
	if entry[n] != endOfEntry || uint64(adler32.Checksum(entry[:n])) != sum {
		return nil, nil
	}
	return entry[:n], nil
}

// ended returns no error at the end of a file.
func ended(err error) error {
	if errors.Is(cut(err), io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// cut turns the end of a file into one that is unexpected.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
