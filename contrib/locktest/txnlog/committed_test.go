package txnlog_test

import (
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zklock/go-zklock/contrib/locktest/txnlog"
)

// folder makes the folder of a server that has logged some transactions, and has snapshots.
func folder(t *testing.T, logged, snapshots []int64) string {
	t.Helper()
	dir := t.TempDir()
	const logMagic, deletion = 0x5a4b4c47, 2
	log := binary.BigEndian.AppendUint32(nil, logMagic)
	log = binary.BigEndian.AppendUint32(log, 2)
	log = binary.BigEndian.AppendUint64(log, 0)
	for _, zxid := range logged {
		path := fmt.Sprintf("/%x", zxid)
		txn := binary.BigEndian.AppendUint64(nil, 1)           // the session
		txn = binary.BigEndian.AppendUint32(txn, 1)            // the request
		txn = binary.BigEndian.AppendUint64(txn, uint64(zxid)) //nolint:gosec // it is positive
		txn = binary.BigEndian.AppendUint64(txn, 0)            // the time
		txn = binary.BigEndian.AppendUint32(txn, deletion)
		txn = binary.BigEndian.AppendUint32(txn, uint32(len(path))) //nolint:gosec // it is short
		txn = append(txn, path...)
		log = binary.BigEndian.AppendUint64(log, uint64(adler32.Checksum(txn)))
		log = binary.BigEndian.AppendUint32(log, uint32(len(txn))) //nolint:gosec // it is short
		log = append(append(log, txn...), 'B')
	}
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("log.%x", logged[0])), log, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, zxid := range snapshots {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("snapshot.%x", zxid)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCommitted(t *testing.T) {
	const first, second = 0x100000000, 0x200000000 // epochs
	type server struct{ logged, snapshots []int64 }
	for name, c := range map[string]struct {
		servers []server
		want    []int64
	}{
		"by more than half of the logs": {
			[]server{{logged: []int64{first + 1, first + 2}}, {logged: []int64{first + 1, first + 2}}, {logged: []int64{first + 1}}},
			[]int64{first + 1, first + 2},
		},
		"not what one server alone had when its leader failed": {
			[]server{{logged: []int64{first + 1, first + 2}}, {logged: []int64{first + 1, second + 1}}, {logged: []int64{first + 1, second + 1}}},
			[]int64{first + 1, second + 1},
		},
		"what the next leader alone had, and sent in a snapshot": {
			[]server{
				{logged: []int64{first + 1, first + 2, first + 3, second + 1}, snapshots: []int64{first + 3}},
				{logged: []int64{first + 1, second + 1}, snapshots: []int64{first + 3}},
				{logged: []int64{first + 1}},
			},
			[]int64{first + 1, first + 2, first + 3, second + 1},
		},
		"not the end of a log that a snapshot of its own server has": {
			[]server{
				{logged: []int64{first + 1, first + 2}, snapshots: []int64{first + 2}},
				{logged: []int64{first + 1, second + 1}, snapshots: []int64{first + 1}},
				{logged: []int64{first + 1, second + 1}, snapshots: []int64{first + 1}},
			},
			[]int64{first + 1, second + 1},
		},
		"not what is older than the beginning": {
			[]server{{logged: []int64{1, first + 1}}, {logged: []int64{1, first + 1}}, {logged: []int64{1, first + 1}}},
			[]int64{first + 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var dirs []string
			for _, s := range c.servers {
				dirs = append(dirs, folder(t, s.logged, s.snapshots))
			}
			var got []int64
			for x, err := range txnlog.Committed(dirs, 1) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, x.Zxid)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("committed are %x, want %x", got, c.want)
			}
		})
	}
}
