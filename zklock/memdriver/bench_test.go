package memdriver_test

import (
	"context"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// BenchmarkMulti measures the requests of an uncontended acquire and release: one
// transaction creates the contender and returns the parent's Stat, and one request
// deletes the contender.
func BenchmarkMulti(b *testing.B) {
	ensemble := memdriver.New()
	defer ensemble.Close()
	ctx := context.Background()
	s, err := ensemble.Connector().Connect(ctx, 10*time.Second)
	if err != nil {
		b.Fatal(err)
	}
	acl := driver.OpenACL(driver.PermAll)
	if _, err := s.Create(ctx, "/lock", []byte("zklock"), driver.Container, acl); err != nil {
		b.Fatal(err)
	}
	data := []byte(`{"host":"a","pid":1}`)
	b.ReportAllocs()
	for b.Loop() {
		results, err := s.Multi(ctx, []driver.Op{
			driver.CreateOp("/lock/_c_00000000-0000-0000-0000-000000000000-__WRIT__", data, driver.EphemeralSequential, acl),
			driver.SetOp("/lock", []byte("zklock"), driver.AnyVersion),
		})
		if err != nil || results[1].Stat.NumChildren != 1 {
			b.Fatal(results, err)
		}
		if err := s.Delete(ctx, results[0].Path, driver.AnyVersion); err != nil {
			b.Fatal(err)
		}
	}
}
