package connectlock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/apipb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/interceptors/lockpb"
	"github.com/zklock/go-zklock/internal/testkit/hostile"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// service is the full name of the service that declares its locks.
const service = "zklock.test.connect.v1.Shop"

// The descriptor of the service, which generated code would register.
func init() {
	method := func(name string, lock *lockpb.Lock) *descriptorpb.MethodDescriptorProto {
		m := &descriptorpb.MethodDescriptorProto{
			Name: proto.String(name), InputType: proto.String(".google.protobuf.StringValue"), OutputType: proto.String(".google.protobuf.StringValue"),
		}
		if lock != nil {
			m.Options = new(descriptorpb.MethodOptions)
			proto.SetExtension(m.Options, lockpb.E_Lock, lock)
		}
		return m
	}
	register := func(file, service string, methods ...*descriptorpb.MethodDescriptorProto) {
		f, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
			Name: proto.String(file), Package: proto.String("zklock.test.connect.v1"), Syntax: proto.String("proto3"),
			Dependency: []string{"google/protobuf/wrappers.proto", "zklock/v1/lock.proto"},
			Service:    []*descriptorpb.ServiceDescriptorProto{{Name: proto.String(service), Method: methods}},
		}, protoregistry.GlobalFiles)
		if err != nil {
			panic(err)
		}
		if err := protoregistry.GlobalFiles.RegisterFile(f); err != nil {
			panic(err)
		}
	}
	register("connect/shop.proto", "Shop",
		method("Pay", &lockpb.Lock{Name: "orders/{value}", Wait: "0s"}),
		method("Upload", &lockpb.Lock{Name: "uploads", Mode: lockpb.Mode_SHARED}),
		method("Watch", nil))
	register("connect/wrong.proto", "Wrong", method("Pay", &lockpb.Lock{Name: "orders/{id}"}))
}

// quiet is a logger that drops everything.
func quiet() connectlock.Option { return connectlock.WithLogger(slog.New(slog.DiscardHandler)) }

// Each pick chooses by what the call says, and a call that does not say it is refused.
func TestPicks(t *testing.T) {
	c, _ := zklocktest.New(t)
	byHeader := connectlock.ByHeader(c, "Order", "orders/%s")
	for what, x := range map[string]struct {
		pick   connectlock.Pick
		value  string
		header []string
		held   string
		code   connect.Code
		reason string
	}{
		"header":            {pick: byHeader, header: []string{"order", "42"}, held: "orders/42"},
		"header twice":      {pick: connectlock.Optional(byHeader), header: []string{"order", "42", "order", "42"}, code: connect.CodeInvalidArgument, reason: "LOCK_NAME"},
		"no header":         {pick: byHeader, code: connect.CodeInvalidArgument, reason: "LOCK_NAME"},
		"optional header":   {pick: connectlock.Optional(byHeader), held: "no lock"},
		"field":             {pick: connectlock.ByField(c, "value", "orders/%s"), value: "42", held: "orders/42"},
		"empty field":       {pick: connectlock.ByField(c, "value", "orders/%s"), code: connect.CodeInvalidArgument, reason: "LOCK_NAME"},
		"unknown field":     {pick: connectlock.ByField(c, "id", "orders/%s"), value: "42", code: connect.CodeInternal, reason: "LOCK_ERROR"},
		"two fields":        {pick: connectlock.ByFields(c, "%s/x/%s", "value", "value"), value: "a/b", held: "a%2Fb/x/a%2Fb"},
		"bad name":          {pick: connectlock.ByField(c, "value", "orders/%s"), value: "..", code: connect.CodeInvalidArgument, reason: "LOCK_NAME"},
		"declared":          {pick: connectlock.FromProto(c), value: "42", held: "orders/42"},
		"procedure":         {pick: connectlock.ByProcedure(map[string]connectlock.Pick{pay: fixed(c), "/" + service + "/*": nil}), held: "orders/42"},
		"service":           {pick: connectlock.ByProcedure(map[string]connectlock.Pick{"/" + service + "/*": fixed(c)}), held: "orders/42"},
		"another procedure": {pick: connectlock.ByProcedure(map[string]connectlock.Pick{upload: fixed(c)}), held: "no lock"},
	} {
		t.Run(what, func(t *testing.T) {
			s := serve(t, shop{pay: named}, connectlock.HandlerInterceptor(x.pick, quiet()))
			got, err := call(t.Context(), s.pay, x.value, x.header...)
			if x.code != 0 {
				wantError(t, err, x.code, x.reason)
				return
			}
			if err != nil || got != x.held {
				t.Errorf("the handler held %q, %v, want %q", got, err, x.held)
			}
		})
	}
}

// Two calls have one lock only if all of their values are equal, whatever a client sends. A call with
// values that make no name is refused.
func TestValuesOfACallNameNoOtherLock(t *testing.T) {
	c, _ := zklocktest.New(t)
	pick := connectlock.ByFields(c, "events/%s/seats/%s", "name", "root")
	hostile.Pairs(t, func(event, seat string) (name string) {
		a := pick(t.Context(), connectlock.Call{Request: &apipb.Mixin{Name: event, Root: seat}})
		lock, err := a.TryAcquire(t.Context())
		if err != nil {
			if !errors.Is(err, zklock.ErrInvalidName) {
				t.Errorf("%q, %q: %v", event, seat, err)
			}
			return ""
		}
		defer lock.Release(t.Context())
		return lock.Name()
	})
	for value, code := range map[string]connect.Code{"..": connect.CodeInvalidArgument, "": connect.CodeInvalidArgument, strings.Repeat("x", 600): connect.CodeInvalidArgument} {
		s := serve(t, shop{pay: named}, connectlock.HandlerInterceptor(connectlock.ByFields(c, "%s/%s", "value", "value"), quiet()))
		_, err := call(t.Context(), s.pay, value)
		wantError(t, err, code, "LOCK_NAME")
	}
	defer func() {
		if v, ok := recover().(string); !ok || !strings.HasPrefix(v, "connectlock: ByFields: ") {
			t.Errorf("two fields for three places: recovered %v", v)
		}
	}()
	connectlock.ByFields(c, "%s/%s/%s", "name", "root")
}

// A method's declaration has a mode, and a wait that replaces the interceptor's.
func TestFromProtoModeAndWait(t *testing.T) {
	c, e := zklocktest.New(t)
	defer elsewhere(t, e)()
	inside := make(chan struct{})
	s := serve(t, shop{
		pay: named,
		upload: func(ctx context.Context, s *connect.ClientStream[text]) (*text, error) {
			l, _ := zklock.FromContext(ctx)
			inside <- struct{}{} // both handlers are here at the same time
			return wrapperspb.String(l.Mode().String()), nil
		},
		watch: func(ctx context.Context, _ *text, s *connect.ServerStream[text]) error {
			return s.Send(wrapperspb.String(name(ctx)))
		},
	}, connectlock.HandlerInterceptor(connectlock.FromProto(c), connectlock.WithWait(time.Hour)))
	_, err := call(t.Context(), s.pay, "42") // without a wait, although the interceptor would wait for an hour
	wantError(t, err, connect.CodeAborted, "LOCK_CONTENDED")
	got := make(chan string, 2)
	for range 2 {
		go func() {
			m, err := s.upload.CallClientStream(t.Context()).CloseAndReceive()
			if err != nil {
				got <- err.Error()
				return
			}
			got <- m.Msg.GetValue()
		}()
	}
	<-inside
	<-inside
	for range 2 {
		if mode := <-got; mode != "shared" {
			t.Errorf("the handler held the lock %q, want shared", mode)
		}
	}
	down, err := s.watch.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("x")))
	if err != nil || !down.Receive() || down.Msg().GetValue() != "no lock" {
		t.Errorf("a method without a declaration: %v, %v", down, err)
	}
}

// CheckProto finds what is wrong before the first call.
func TestCheckProto(t *testing.T) {
	if err := connectlock.CheckProto(service); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"zklock.test.connect.v1.Wrong":   `method zklock.test.connect.v1.Wrong.Pay: message google.protobuf.StringValue has no field "id"`,
		"zklock.test.connect.v1.Missing": "import its generated code",
		service + ".Pay":                 "is not a service",
	} {
		if err := connectlock.CheckProto(service, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("CheckProto(%q) = %v, want %q in it", name, err, want)
		}
	}
}

// What is wrong in a program panics when the interceptor is made.
func TestMistakesPanic(t *testing.T) {
	c, _ := zklocktest.New(t)
	for what, f := range map[string]func(){
		"no pick":        func() { connectlock.HandlerInterceptor(nil) },
		"no pick at all": func() { connectlock.Optional(nil) },
		"no client":      func() { connectlock.ByField(nil, "value", "orders/%s") },
		"no key":         func() { connectlock.ByHeader(c, "", "orders/%s") },
		"bad format":     func() { connectlock.ByHeader(c, "order", "orders") },
		"bad path":       func() { connectlock.ByField(c, "a..b", "orders/%s") },
		"bad procedure":  func() { connectlock.ByProcedure(map[string]connectlock.Pick{"Pay": nil}) },
		"bad code":       func() { connectlock.WithCode(0) },
		"bad lost code":  func() { connectlock.WithLostCode(0) },
	} {
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.HasPrefix(v, "connectlock: ") {
					t.Errorf("%s: recovered %q, want a panic of this package", what, v)
				}
			}()
			f()
		}()
	}
}
