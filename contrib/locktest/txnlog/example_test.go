package txnlog_test

import (
	"fmt"

	"github.com/zklock/go-zklock/contrib/locktest/txnlog"
)

// A log of a server, from its first transaction on.
func ExampleTransactions() {
	for t, err := range txnlog.Transactions("testdata", 0) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if t.Ops[0].Kind == txnlog.CloseSession {
			fmt.Printf("0x%x ends session 0x%x, which has asked for it: %v\n", t.Zxid, t.Session, t.Request != 0)
		}
	}
	// Output:
	// 0x8 ends session 0x10001a375640000, which has asked for it: true
	// 0xa ends session 0x10001a375640001, which has asked for it: true
	// 0xe ends session 0x10001a375640002, which has asked for it: true
}

// The holders and waiters of each name, from the logs of all servers of an ensemble of one.
func ExampleNewQueues() {
	start, err := txnlog.Start("testdata")
	if err != nil {
		fmt.Println(err)
		return
	}
	queues := txnlog.NewQueues(start)
	for t, err := range txnlog.Committed([]string{"testdata"}, start.Zxid) {
		if err != nil {
			fmt.Println(err)
			return
		}
		queues.Apply(t)
	}
	for _, s := range queues.Stays() {
		fmt.Printf("%s: session 0x%x waited %v, held %v\n", s.Name, s.Session, s.Turn.Sub(s.Created), s.Gone.Sub(s.Turn))
	}
	// Output:
	// orders/42: session 0x10001a375640000 waited 0s, held 3.316s
	// orders/42: session 0x10001a375640001 waited 2.62s, held 54ms
	// nightly: session 0x10001a375640002 waited 0s, held 34ms
}
