// Package zklocktest gives a test a client and an ensemble in memory, in one line:
//
//	func TestCharge(t *testing.T) {
//		client, ensemble := zklocktest.New(t)
//		...
//		ensemble.Break(client.Mutex("orders/42").Path()) // an operator deletes the holder's node
//	}
//
// [Order] makes a test fail whose callers acquire locks in opposite orders, whether or not they meet.
//
// Inside a testing/synctest bubble, hours of waiting take milliseconds. The package
// [memdriver] describes what an ensemble can do.
package zklocktest

import (
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// New returns a client of a new ensemble in memory, which no other test sees. When the test and its
// subtests have ended, the client is closed, and then the ensemble. If one of the two cannot be
// closed without an error, the test fails. For a client with other settings, and for more clients
// of the ensemble, make its Connector that of a [zklock.Config].
func New(t testing.TB, opts ...zklock.Option) (*zklock.Client, *memdriver.Ensemble) {
	t.Helper()
	ensemble := memdriver.New()
	client, err := zklock.OpenConnector(ensemble.Connector(), opts...)
	if err != nil {
		_ = ensemble.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if err := ensemble.Close(); err != nil {
			t.Error(err)
		}
	})
	return client, ensemble
}
