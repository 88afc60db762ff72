package txnlog

import "iter"

// Committed returns the transactions that the ensemble has committed, in their order. Each is newer than a zxid. The folders are
// those of all voting servers, with their snapshots.
//
// A transaction was committed if more than half of some servers have it, or a later one of the same leader, since a leader's
// transactions are committed in order. A server has those in its log. It also has the last one before a snapshot in its folder, and the
// log may lack that one: a new leader whose log has transactions that no other server has yet sends its followers a snapshot, or these
// transactions, and they write down what they were sent.
func Committed(dirs []string, after int64) iter.Seq2[Txn, error] {
	return func(yield func(Txn, error) bool) {
		snapshots := make([]map[int64]bool, len(dirs))
		for i, dir := range dirs {
			all, err := files(dir, "snapshot.")
			if err != nil {
				yield(Txn{}, err)
				return
			}
			snapshots[i] = make(map[int64]bool)
			for _, s := range all {
				snapshots[i][s.zxid] = true
			}
		}
		last := make(map[int64]int64) // the last transaction that was committed, by epoch
		for c, err := range merged(dirs, after) {
			if err != nil {
				yield(Txn{}, err)
				return
			}
			n := 0
			for i, logged := range c.logged {
				if logged || snapshots[i][c.txn.Zxid] {
					n++
				}
			}
			if n > len(dirs)/2 {
				last[epoch(c.txn)] = c.txn.Zxid
			}
		}
		for c, err := range merged(dirs, after) {
			if err != nil {
				yield(Txn{}, err)
				return
			}
			if c.txn.Zxid <= last[epoch(c.txn)] && !yield(c.txn, nil) {
				return
			}
		}
	}
}

// epoch returns the number of the leader that has made a transaction.
func epoch(t Txn) int64 { return t.Zxid >> 32 }

// copied is a transaction that some servers have logged.
type copied struct {
	txn    Txn
	logged []bool // by server; valid until the next transaction
}

// merged returns the transactions of all logs, in their order.
func merged(dirs []string, after int64) iter.Seq2[copied, error] {
	return func(yield func(copied, error) bool) {
		type server struct {
			next func() (Txn, error, bool)
			txn  Txn
			ok   bool // txn is the next one of this server
		}
		servers := make([]server, len(dirs))
		advance := func(s *server) error {
			var err error
			s.txn, err, s.ok = s.next()
			return err
		}
		for i, dir := range dirs {
			next, stop := iter.Pull2(Transactions(dir, after))
			defer stop()
			servers[i].next = next
			if err := advance(&servers[i]); err != nil {
				yield(copied{}, err)
				return
			}
		}
		c := copied{logged: make([]bool, len(dirs))}
		for {
			var oldest *Txn
			for i := range servers {
				if s := &servers[i]; s.ok && (oldest == nil || s.txn.Zxid < oldest.Zxid) {
					oldest = &s.txn
				}
			}
			if oldest == nil {
				return
			}
			c.txn = *oldest
			for i := range servers {
				s := &servers[i]
				if c.logged[i] = s.ok && s.txn.Zxid == c.txn.Zxid; !c.logged[i] {
					continue
				}
				if err := advance(s); err != nil {
					yield(copied{}, err)
					return
				}
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}
