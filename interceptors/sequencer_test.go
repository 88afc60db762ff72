package interceptors_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// allCallers trusts all callers, as one origin.
func allCallers(context.Context, interceptors.Call) (string, bool) { return "shop", true }

func sequencer(name string, zxid int64) string {
	return fence.Sequencer{Name: name, Mode: zklock.Exclusive, Token: zklock.Token{Zxid: zxid}}.String()
}

// newerSeen returns a guard that has seen token 11 of the lock "upstream".
func newerSeen(t *testing.T) *fence.Guard {
	t.Helper()
	guard := new(fence.Guard)
	see(t, guard)
	return guard
}

func see(t *testing.T, guard *fence.Guard) {
	newer := fence.Sequencer{Name: "upstream", Mode: zklock.Exclusive, Token: zklock.Token{Zxid: 11}, Origin: "shop"}
	if err := guard.Check([]fence.Sequencer{newer}); err != nil {
		t.Error(err)
	}
}

// received calls a server's interceptor with sequencers.
func received(i grpc.UnaryServerInterceptor, values ...string) error {
	ctx := metadata.NewIncomingContext(context.Background(), metadata.MD{fence.Key: values})
	_, err := callUnary(ctx, i, func(context.Context, any) (any, error) { return nil, nil })
	return err
}

func TestStaleSequencersAreRefused(t *testing.T) {
	i := interceptors.UnaryServerInterceptor(interceptors.PassThrough, interceptors.WithSequencerCheck(new(fence.Guard), allCallers))
	for _, c := range []struct {
		name   string
		values []string
		code   codes.Code
	}{
		{"the first", []string{sequencer("a", 10)}, codes.OK},
		{"the same again", []string{sequencer("a", 10)}, codes.OK},
		{"a newer one", []string{sequencer("a", 12)}, codes.OK},
		{"the stale one", []string{sequencer("a", 10)}, codes.FailedPrecondition},
		{"another name", []string{sequencer("b", 3)}, codes.OK},
		{"one of two stale", []string{sequencer("b", 4), sequencer("a", 11)}, codes.FailedPrecondition},
		{"nothing was noted of the refused", []string{sequencer("b", 3)}, codes.OK},
		{"none", nil, codes.OK},
		{"nonsense", []string{"nonsense"}, codes.InvalidArgument},
	} {
		if err := received(i, c.values...); status.Code(err) != c.code {
			t.Errorf("%s: error %v, want %v", c.name, err, c.code)
		}
	}
	wantStatus(t, received(i, "nonsense"), codes.InvalidArgument, interceptors.ReasonName)
}

func TestSequencersAreNotCheckedUnlessAskedForOrTrusted(t *testing.T) {
	off := interceptors.UnaryServerInterceptor(interceptors.PassThrough)
	strangers := interceptors.UnaryServerInterceptor(interceptors.PassThrough, interceptors.WithSequencerCheck(newerSeen(t),
		func(context.Context, interceptors.Call) (string, bool) { return "shop", false }))
	for _, i := range []grpc.UnaryServerInterceptor{off, strangers} {
		for _, v := range []string{sequencer("upstream", 12), sequencer("upstream", 9), "nonsense"} {
			if err := received(i, v); err != nil {
				t.Errorf("sequencer %q was checked: %v", v, err)
			}
		}
	}
}

func TestOriginsHaveTokensOfTheirOwn(t *testing.T) {
	i := interceptors.UnaryServerInterceptor(interceptors.PassThrough, interceptors.WithSequencerCheck(new(fence.Guard),
		func(_ context.Context, call interceptors.Call) (string, bool) {
			return call.Metadata.Get("origin")[0], true
		}))
	for _, c := range []struct {
		origin string
		zxid   int64
		code   codes.Code
	}{{"a", 10, codes.OK}, {"b", 5, codes.OK}, {"a", 5, codes.FailedPrecondition}, {"b", 6, codes.OK}} {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("origin", c.origin, fence.Key, sequencer("orders", c.zxid)))
		_, err := callUnary(ctx, i, func(context.Context, any) (any, error) { return nil, nil })
		if status.Code(err) != c.code {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

func TestSequencerThatGoesStaleDuringTheWaitIsRefused(t *testing.T) {
	for _, kind := range []string{"unary on the server", "stream on the server", "first message on the server"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				guard := new(fence.Guard)
				release := w.Hold("orders/42")
				time.AfterFunc(time.Second, func() {
					see(t, guard)
					release()
				})
				ctx := metadata.AppendToOutgoingContext(t.Context(), fence.Key, sequencer("upstream", 10))
				there, _ := kinds[kind](t, ctx, w.fixed, interceptors.WithSequencerCheck(guard, allCallers))
				wantStatus(t, there, codes.FailedPrecondition, interceptors.ReasonStale)
				if len(w.Locks()) != 1 {
					t.Errorf("%d locks were acquired, want 1: the check is made under the lock", len(w.Locks()))
				}
			})
		})
	}
}

// TestSequencersTravel checks the sequencers that arrive at the server, for each kind of call
// under a lock.
func TestSequencersTravel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var got []string
		arrive := func(ctx context.Context) {
			got = metadata.ValueFromIncomingContext(ctx, fence.Key)
		}
		s := func() *shop {
			return &shop{
				pay: func(ctx context.Context, _ *text) (*text, error) {
					arrive(ctx)
					return &text{}, nil
				},
				chat: func(stream grpc.BidiStreamingServer[text, text]) error {
					arrive(stream.Context())
					return nil
				},
			}
		}
		calls := map[string]func(context.Context, *grpc.ClientConn) error{
			"unary": func(ctx context.Context, conn *grpc.ClientConn) error {
				_, err := newShop(conn).Pay(ctx, &text{})
				return err
			},
			"stream": chat,
		}
		passes := func(opts ...interceptors.Option) *grpc.ClientConn {
			return serve(t, s(), onClient(interceptors.PassThrough, opts...)...)
		}
		passing, off := passes(interceptors.WithSequencers()), passes()
		locking := serve(t, s(), onClient(w.fixed, interceptors.WithSequencers())...)
		first := serve(t, s(), onClient(w.fixed, interceptors.WithSequencers(), interceptors.WithFirstMessage())...)
		for name, call := range calls {
			want := func(what string, ctx context.Context, conn *grpc.ClientConn, want ...string) {
				t.Helper()
				got = nil
				if err := call(ctx, conn); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: %s: the server received %q, want %q", name, what, got, want)
				}
			}
			passedOn := metadata.AppendToOutgoingContext(t.Context(), fence.Key, "passed on")
			want("without a lock", t.Context(), passing)
			want("passed on", passedOn, passing, "passed on")
			err := zklock.Do(passedOn, w.client.Mutex("mine"), func(ctx context.Context, l *zklock.Lock) error {
				mine := fence.Of(l)[0].String()
				want("under a lock", ctx, passing, "passed on", mine)
				want("the same again", metadata.AppendToOutgoingContext(ctx, fence.Key, mine), passing, "passed on", mine)
				want("switched off", ctx, off, "passed on")
				want("detached", zklock.Detach(ctx), passing, "passed on")
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			for _, conn := range []*grpc.ClientConn{locking, first} {
				if err := call(t.Context(), conn); err != nil {
					t.Fatal(err)
				}
				seqs, err := fence.ParseValues(got, "")
				if err != nil || len(seqs) != 1 || seqs[0].Name != "orders/42" {
					t.Errorf("%s: the call's own lock: the server received %q, %v", name, got, err)
				}
			}
		}
	})
}

// TestLateCallOfAHolderThatWasStopped: the first holder's call is delayed until a second holder has
// the lock, and arrives after the second holder's call. The server refuses it.
func TestLateCallOfAHolderThatWasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		opts := onServer(interceptors.PassThrough, interceptors.WithSequencerCheck(new(fence.Guard), allCallers))
		opts = append(opts, onClient(interceptors.PassThrough, interceptors.WithSequencers())...)
		client := newShop(serve(t, &shop{pay: func(context.Context, *text) (*text, error) {
			return &text{}, nil
		}}, opts...))
		first, err := w.client.Mutex("orders/42").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		late := fence.Of(first)[0].String() // the metadata of the call that is delayed
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		err = zklock.Do(t.Context(), w.client.Mutex("orders/42"), func(ctx context.Context, _ *zklock.Lock) error {
			_, err := client.Pay(ctx, &text{})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Pay(metadata.AppendToOutgoingContext(t.Context(), fence.Key, late), &text{})
		wantStatus(t, err, codes.FailedPrecondition, interceptors.ReasonStale)
	})
}
