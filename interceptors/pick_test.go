package interceptors_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/interceptors/lockpb"
	"github.com/zklock/go-zklock/internal/testkit/hostile"
	"github.com/zklock/go-zklock/zklock"
)

// mem opens a client for tests of picks. Most of them do not acquire.
func mem(t testing.TB) *zklock.Client {
	t.Helper()
	c, err := zklock.Open("mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// refused makes a call with the pick, and returns its code, reason and error.
func refused(t *testing.T, pick interceptors.Pick, call interceptors.Call) (codes.Code, string, error) {
	t.Helper()
	i := interceptors.UnaryServerInterceptor(pick)
	ctx := metadata.NewIncomingContext(t.Context(), call.Metadata)
	_, err := i(ctx, call.Request, &grpc.UnaryServerInfo{FullMethod: call.FullMethod}, func(context.Context, any) (any, error) { return nil, nil })
	if err == nil {
		return codes.OK, "", nil
	}
	return codeOf(err), interceptors.Reason(err), err
}

// Two calls have one lock only if all of their values are equal, whatever a client sends. That holds
// for the fields of ByFields and of a declaration. A call with values that make no name is refused.
func TestValuesOfACallNameNoOtherLock(t *testing.T) {
	c := mem(t)
	method := declare(t, "Seats", &lockpb.Lock{Name: "events/{id}/seats/{customer.name}"})
	for what, pick := range map[string]interceptors.Pick{
		"fields":   interceptors.ByFields(c, "events/%s/seats/%s", "id", "customer.name"),
		"declared": interceptors.FromProto(c),
	} {
		t.Run(what, func(t *testing.T) {
			hostile.Pairs(t, func(event, seat string) (name string) {
				call := interceptors.Call{FullMethod: method, Request: seatOf(t, event, seat)}
				lock, err := pick(t.Context(), call).TryAcquire(t.Context())
				if err == nil {
					defer lock.Release(t.Context())
					return lock.Name()
				}
				if code, reason, err := refused(t, pick, call); code != codes.InvalidArgument || reason != interceptors.ReasonName {
					t.Errorf("%q, %q: code %v, reason %s: %v", event, seat, code, reason, err)
				}
				return ""
			})
		})
	}
}

// One field of a declaration is inserted unchanged, as by ByField. Of two, one that the type lacks, or
// a text that cannot separate them, is an error of the program.
func TestSeveralFields(t *testing.T) {
	c := mem(t)
	ann := order(t, `id: "a/b" customer { name: "x:y" number: 7 }`)
	for _, x := range []struct {
		pick interceptors.Pick
		want string
		code codes.Code
	}{
		{pick: interceptors.ByFields(c, "%s:%s/%s", "customer.name", "customer.number", "id"), want: "x%3Ay:7/a%2Fb"},
		{pick: interceptors.ByFields(c, "orders/%s", "id"), want: "orders/a%2Fb"},
		{pick: interceptors.ByFields(c, "%s/%s", "id", "cash"), code: codes.InvalidArgument},
		{pick: interceptors.Optional(interceptors.ByFields(c, "%s/%s", "id", "cash"))},
		{pick: interceptors.ByFields(c, "%s/%s", "cash", "nothing"), code: codes.Internal},
		{pick: declared(t, c, "OneField", "orders/{id}"), want: "orders/a/b"},
		{pick: declared(t, c, "Colon", "{customer.name}:{id}"), want: "x%3Ay:a%2Fb"},
		{pick: declared(t, c, "Adjacent", "{customer.name}{id}"), code: codes.Internal},
		{pick: declared(t, c, "Letter", "{customer.name}x{id}"), code: codes.Internal},
	} {
		a := x.pick(t.Context(), interceptors.Call{Request: ann})
		switch {
		case x.code == 0 && x.want == "":
			if a != nil {
				t.Errorf("an optional pick returned %v for a call without a value", a)
			}
		case x.code == 0:
			if a.Name() != x.want {
				t.Errorf("picked %q, want %q", a.Name(), x.want)
			}
		default:
			if code, _, err := refused(t, x.pick, interceptors.Call{Request: ann}); code != x.code {
				t.Errorf("%v, want code %v", err, x.code)
			}
		}
	}
	for what, f := range map[string]func(){
		"no client":      func() { interceptors.ByFields(nil, "%s/%s", "a", "b") },
		"no path":        func() { interceptors.ByFields(c, "orders") },
		"too few paths":  func() { interceptors.ByFields(c, "%s/%s", "a") },
		"a bad path":     func() { interceptors.ByFields(c, "%s/%s", "a", "b..c") },
		"no separator":   func() { interceptors.ByFields(c, "%s%s", "a", "b") },
		"no valid name":  func() { interceptors.ByFields(c, "%s//%s", "a", "b") },
		"a bad sequence": func() { interceptors.ByFields(c, "%s/%d", "a", "b") },
	} {
		func() {
			defer func() {
				if v, ok := recover().(string); !ok || !strings.HasPrefix(v, "interceptors: ByFields: ") {
					t.Errorf("%s: recovered %v", what, v)
				}
			}()
			f()
		}()
	}
}

// seatOf returns a message with an event as its id, and a seat as its customer's name. They may be no
// UTF-8, which a message in text form cannot have.
func seatOf(t *testing.T, event, seat string) proto.Message {
	t.Helper()
	m := order(t, "customer {}").ProtoReflect()
	m.Set(m.Descriptor().Fields().ByName("id"), protoreflect.ValueOfString(event))
	c := m.Mutable(m.Descriptor().Fields().ByName("customer")).Message()
	c.Set(c.Descriptor().Fields().ByName("name"), protoreflect.ValueOfString(seat))
	return m.Interface()
}

// declared returns a Pick for a method that declares a lock with the given name.
func declared(t *testing.T, c *zklock.Client, service, name string) interceptors.Pick {
	t.Helper()
	method := declare(t, service, &lockpb.Lock{Name: name})
	pick := interceptors.FromProto(c)
	return func(ctx context.Context, call interceptors.Call) zklock.Acquirer {
		call.FullMethod = method
		return pick(ctx, call)
	}
}

func TestByField(t *testing.T) {
	c := mem(t)
	full := order(t, `id: "a/b" customer { name: "Ann" number: -7 } i32: -1 u32: 2 i64: -3 u64: 9223372036854775808 yes: true
		size: SMALL maybe: 0 card: "4711" raw: "x" price: 1.5`)
	empty, odd := order(t, ""), order(t, "size: 7")
	for _, x := range []struct {
		path    string
		request any
		want    string // the name
		code    codes.Code
	}{
		{path: "id", request: full, want: "n-a/b-m"},
		{path: "customer.name", request: full, want: "n-Ann-m"},
		{path: "customer.number", request: full, want: "n--7-m"},
		{path: "i32", request: full, want: "n--1-m"},
		{path: "u32", request: full, want: "n-2-m"},
		{path: "i64", request: full, want: "n--3-m"},
		{path: "u64", request: full, want: "n-9223372036854775808-m"},
		{path: "yes", request: full, want: "n-true-m"},
		{path: "size", request: full, want: "n-SMALL-m"},
		{path: "size", request: odd, want: "n-7-m"},
		{path: "maybe", request: full, want: "n-0-m"},
		{path: "card", request: full, want: "n-4711-m"},
		{path: "value", request: &text{Value: "a/b"}, want: "n-a/b-m"}, // generated code
		{path: "id", request: empty, code: codes.InvalidArgument},
		{path: "i32", request: empty, code: codes.InvalidArgument},
		{path: "maybe", request: empty, code: codes.InvalidArgument},
		{path: "cash", request: full, code: codes.InvalidArgument},
		{path: "customer.name", request: empty, code: codes.InvalidArgument},
		{path: "id", request: nil, code: codes.InvalidArgument},
		{path: "nothing", request: full, code: codes.Internal},
		{path: "customer.nothing", request: full, code: codes.Internal},
		{path: "customer.nothing", request: empty, code: codes.Internal},
		{path: "customer", request: full, code: codes.Internal},
		{path: "id.length", request: full, code: codes.Internal},
		{path: "tags", request: full, code: codes.Internal},
		{path: "labels", request: full, code: codes.Internal},
		{path: "raw", request: full, code: codes.Internal},
		{path: "price", request: full, code: codes.Internal},
		{path: "id", request: "no message", code: codes.Internal},
	} {
		pick := interceptors.ByField(c, x.path, "n-%s-m")
		call := interceptors.Call{FullMethod: methodPay, Request: x.request}
		if x.code == codes.OK {
			if got := pick(t.Context(), call).Name(); got != x.want {
				t.Errorf("%s: picked %q, want %q", x.path, got, x.want)
			}
			continue
		}
		code, reason, err := refused(t, pick, call)
		if want := map[codes.Code]string{codes.InvalidArgument: interceptors.ReasonName, codes.Internal: interceptors.ReasonError}[x.code]; code != x.code || reason != want {
			t.Errorf("%s: code %v, error %v, want code %v", x.path, code, err, x.code)
		}
		missing := code == codes.InvalidArgument && x.request != nil
		if optional, _, _ := refused(t, interceptors.Optional(pick), call); (optional == codes.OK) != missing {
			t.Errorf("%s: with Optional, code %v, want OK: %v", x.path, optional, missing)
		}
	}
}

func TestByMetadata(t *testing.T) {
	pick := interceptors.ByMetadata(mem(t), "Order-Id", "orders/%s")
	for _, x := range []struct {
		md   metadata.MD
		want string
		code codes.Code
	}{
		{md: metadata.Pairs("order-id", "42"), want: "orders/42"},
		{md: metadata.Pairs("order-id", "42", "order-id", "42"), code: codes.InvalidArgument},
		{md: metadata.Pairs("order-id", ""), code: codes.InvalidArgument},
		{md: metadata.Pairs("other", "42"), code: codes.InvalidArgument},
		{code: codes.InvalidArgument},
	} {
		call := interceptors.Call{Metadata: x.md}
		if x.code == codes.OK {
			if got := pick(t.Context(), call).Name(); got != x.want {
				t.Errorf("%v: picked %q, want %q", x.md, got, x.want)
			}
			continue
		}
		if code, reason, err := refused(t, pick, call); code != x.code || reason != interceptors.ReasonName {
			t.Errorf("%v: %v, want %v", x.md, err, x.code)
		}
		optional, _, _ := refused(t, interceptors.Optional(pick), call)
		if missing := len(x.md["order-id"]) < 2; (optional == codes.OK) != missing {
			t.Errorf("%v: with Optional, code %v, want OK: %v", x.md, optional, missing)
		}
	}
}

func TestByMetadataGoesByWhatTravels(t *testing.T) {
	for name, opts := range map[string]func(interceptors.Pick, ...interceptors.Option) []any{"server": onServer, "client": onClient} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			conn := serve(t, &shop{pay: func(context.Context, *text) (*text, error) {
				w.wantHeld()
				return &text{}, nil
			}, chat: func(stream grpc.BidiStreamingServer[text, text]) error {
				w.wantHeld()
				return nil
			}}, opts(interceptors.ByMetadata(w.client, "order-id", "orders/%s"))...)
			ctx := metadata.AppendToOutgoingContext(t.Context(), "order-id", "42")
			if _, err := newShop(conn).Pay(ctx, &text{}); err != nil {
				t.Error(err)
			}
			if err := chat(ctx, conn); err != nil {
				t.Error(err)
			}
			w.WantFree()
			if len(w.Locks()) != 2 {
				t.Errorf("%d locks were acquired, want 2", len(w.Locks()))
			}
		})
	}
}

func TestByMethod(t *testing.T) {
	c := mem(t)
	name := func(n string) interceptors.Pick {
		return func(context.Context, interceptors.Call) zklock.Acquirer { return c.Mutex(n) }
	}
	pick := interceptors.ByMethod(map[string]interceptors.Pick{"/a.A/One": name("one"), "/a.A/*": name("rest"), "/a.A/None": nil, "/b.B/One": name("other")})
	for method, want := range map[string]string{
		"/a.A/One": "one", "/a.A/Two": "rest", "/a.A/None": "", "/b.B/One": "other", "/b.B/Two": "", "/a.AA/One": "", "nonsense": "", "": "",
	} {
		got := ""
		if a := pick(t.Context(), interceptors.Call{FullMethod: method}); a != nil {
			got = a.Name()
		}
		if got != want {
			t.Errorf("%q: picked %q, want %q", method, got, want)
		}
	}
}

func TestPicksThatCannotBePanic(t *testing.T) {
	c := mem(t)
	for name, build := range map[string]func(){
		"format without %s":     func() { interceptors.ByField(c, "value", "orders") },
		"format with two":       func() { interceptors.ByField(c, "id", "%s/%s") },
		"format with another":   func() { interceptors.ByMetadata(c, "id", "orders/%d") },
		"format cut off":        func() { interceptors.ByMetadata(c, "id", "%s%") },
		"an empty path":         func() { interceptors.ByField(c, "", "%s") },
		"a path with a hole":    func() { interceptors.ByField(c, "a..b", "%s") },
		"a path of no names":    func() { interceptors.ByField(c, "a.1b", "%s") },
		"a method without /":    func() { interceptors.ByMethod(map[string]interceptors.Pick{"a.A/One": nil}) },
		"a method of no name":   func() { interceptors.ByMethod(map[string]interceptors.Pick{"/a.A/": nil}) },
		"a service alone":       func() { interceptors.ByMethod(map[string]interceptors.Pick{"/a.A": nil}) },
		"a method with a third": func() { interceptors.ByMethod(map[string]interceptors.Pick{"/a.A/B/C": nil}) },
		"a field of no client":  func() { interceptors.ByField(nil, "id", "%s") },
		"a key of no client":    func() { interceptors.ByMetadata(nil, "id", "%s") },
		"an empty key":          func() { interceptors.ByMetadata(c, "", "%s") },
		"a .proto of no client": func() { interceptors.FromProto(nil) },
		"a guard that is nil":   func() { interceptors.WithSequencerCheck(nil, allCallers) },
	} {
		func() {
			defer func() {
				if v, ok := recover().(string); !ok || !strings.HasPrefix(v, "interceptors: ") {
					t.Errorf("%s: recovered %v", name, v)
				}
			}()
			build()
		}()
	}
	percent := interceptors.ByMetadata(c, "id", "100%%/%s%%")
	if got := percent(t.Context(), interceptors.Call{Metadata: metadata.Pairs("id", "x")}).Name(); got != "100%/x%" {
		t.Errorf("picked %q, want 100%%/x%%", got)
	}
}
