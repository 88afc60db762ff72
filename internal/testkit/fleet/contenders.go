package fleet

import (
	"context"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// AwaitContenders waits until a lock has n contenders: those that hold it, and those that wait.
// url is the ensemble's. A test that kills a holder calls it first: without it, the next process
// may ask for the lock only when the holder is gone, and the test shows nothing.
func AwaitContenders(t testing.TB, url, name string, n int) {
	t.Helper()
	client, err := zklock.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for last := 0; ; {
		all, err := client.Contenders(ctx, name)
		switch {
		case err != nil && ctx.Err() != nil:
			t.Fatalf("%q has %d contenders for %v, want %d", name, last, patience, n)
		case err != nil:
			t.Fatalf("the contenders of %q: %v", name, err)
		case len(all) == n:
			return
		}
		last = len(all)
		select {
		case <-look.C:
		case <-ctx.Done():
		}
	}
}
