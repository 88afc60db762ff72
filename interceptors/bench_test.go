package interceptors_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
)

// BenchmarkAdded measures how much time the interceptors add to a Do, as ns-added/op. The
// two run in turns, and it compares the best of many short runs of each. Otherwise other
// processes of the machine would hide the difference.
func BenchmarkAdded(b *testing.B) {
	for name, locked := range lockedBy(mem(b)) {
		b.Run(name, func(b *testing.B) {
			const batch = 50
			plain := plainDo(mem(b))
			best := func(f func(), least time.Duration) time.Duration {
				start := time.Now()
				for range batch {
					f()
				}
				return min(least, time.Since(start)/batch)
			}
			without, with := time.Hour, time.Hour
			for b.Loop() {
				without, with = best(plain, without), best(locked, with)
			}
			b.ReportMetric(float64(without), "ns-plain/op")
			b.ReportMetric(float64(with-without), "ns-added/op")
		})
	}
}

// lockedBy returns calls under one lock, by side and pick.
func lockedBy(c *zklock.Client) map[string]func() {
	return map[string]func(){
		"server":   lockedServer(fixedPick(c)),
		"client":   lockedClient(fixedPick(c)),
		"by field": lockedServer(interceptors.ByField(c, "value", "orders/%s")),
		"declared": lockedServer(interceptors.FromProto(c)),
	}
}

// plainDo calls Do without an interceptor, also with a limit on the wait and with a mutex
// whose name is made for the call.
func plainDo(c *zklock.Client) func() {
	wait := zklock.WithWait(10 * time.Second)
	ctx, order := arrived(), &text{Value: "42"}
	return func() {
		_ = zklock.Do(ctx, c.Mutex("orders/"+order.GetValue()), func(context.Context, *zklock.Lock) error { return nil }, wait)
	}
}

func fixedPick(c *zklock.Client) interceptors.Pick {
	return func(context.Context, interceptors.Call) zklock.Acquirer { return c.Mutex("orders/42") }
}

// arrived returns the context of a call with the metadata that every call has.
func arrived() context.Context {
	return metadata.NewIncomingContext(context.Background(), metadata.Pairs(
		":authority", "shop.example", "content-type", "application/grpc", "user-agent", "grpc-go", "grpc-accept-encoding", "gzip"))
}

func lockedServer(pick interceptors.Pick) func() {
	i := interceptors.UnaryServerInterceptor(pick)
	ctx, order, reply := arrived(), &text{Value: "42"}, &text{}
	info := &grpc.UnaryServerInfo{FullMethod: methodPay}
	h := func(context.Context, any) (any, error) { return reply, nil }
	return func() {
		if _, err := i(ctx, order, info, h); err != nil {
			panic(err)
		}
	}
}

func lockedClient(pick interceptors.Pick) func() {
	i := interceptors.UnaryClientInterceptor(pick)
	ctx, order, reply := context.Background(), &text{Value: "42"}, &text{}
	invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	return func() {
		if err := i(ctx, methodPay, order, reply, nil, invoke); err != nil {
			panic(err)
		}
	}
}

// maxAllocs is how many allocations an interceptor may add to a Do.
const maxAllocs = 9

func TestInterceptorsAddFewAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates too")
	}
	c := mem(t)
	plain := testing.AllocsPerRun(2000, plainDo(c))
	for name, f := range lockedBy(c) {
		locked := testing.AllocsPerRun(2000, f)
		if locked-plain > maxAllocs {
			t.Errorf("%s: %.1f allocations, %.1f without the interceptor: want at most %d more", name, locked, plain, maxAllocs)
		}
		t.Logf("%s: %.1f allocations, %.1f without", name, locked, plain)
	}
}
