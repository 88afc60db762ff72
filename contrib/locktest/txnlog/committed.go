package txnlog

import "iter"

// Committed returns the transactions that more than half of some servers have in their folders, in their order: those that
// the ensemble has committed. The folders are those of all voting servers. Each transaction is newer than a zxid.
func Committed(dirs []string, after int64) iter.Seq2[Txn, error] {
	return func(yield func(Txn, error) bool) {
		type server struct {
			next func() (Txn, error, bool)
			txn  Txn
			ok   bool // txn is the next one of this server
		}
		servers := make([]server, len(dirs))
		for i, dir := range dirs {
			next, stop := iter.Pull2(Transactions(dir, after))
			defer stop()
			servers[i].next = next
		}
		advance := func(s *server) error {
			var err error
			s.txn, err, s.ok = s.next()
			return err
		}
		for i := range servers {
			if err := advance(&servers[i]); err != nil {
				yield(Txn{}, err)
				return
			}
		}
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
			t, n := *oldest, 0
			for i := range servers {
				if s := &servers[i]; s.ok && s.txn.Zxid == t.Zxid {
					n++
					if err := advance(s); err != nil {
						yield(Txn{}, err)
						return
					}
				}
			}
			if n > len(dirs)/2 && !yield(t, nil) {
				return
			}
		}
	}
}
