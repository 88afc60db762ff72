package interceptors_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/interceptors/lockpb"
	"github.com/zklock/go-zklock/zklock"
)

func codeOf(err error) codes.Code { return status.Code(err) }

func TestFromProtoTakesWhatIsDeclared(t *testing.T) {
	w := newWorld(t)
	pick := interceptors.FromProto(w.client)
	id, ann := &text{Value: "42"}, order(t, `customer { name: "Ann" number: 7 }`)
	for _, c := range []struct {
		method  string
		request proto.Message
		name    string
		mode    zklock.Mode
	}{
		{methodPay, id, "orders/42", zklock.Exclusive},
		{methodUpload, id, "orders/42", zklock.Exclusive},
		{methodChat, id, "chat", zklock.Exclusive},
		{methodRead, id, "orders/42", zklock.Shared},
		{methodDeep, ann, "Ann/7/x", zklock.Exclusive},
		{methodBake, id, "oven", zklock.Permit},
	} {
		for range 2 { // the second time without parsing the declaration
			l, err := pick(t.Context(), interceptors.Call{FullMethod: c.method, Request: c.request}).Acquire(t.Context())
			if err != nil {
				t.Errorf("%s: %v", c.method, err)
				continue
			}
			if l.Name() != c.name || l.Mode() != c.mode {
				t.Errorf("%s: acquired %q, %v, want %q, %v", c.method, l.Name(), l.Mode(), c.name, c.mode)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	for _, method := range []string{methodFree, "/zklock.test.shop.v1.Shop/Unknown", "/unknown.Service/Method", "/zklock.test.shop.v1.Order/id", "nonsense", ""} {
		if a := pick(t.Context(), interceptors.Call{FullMethod: method, Request: ann}); a != nil {
			t.Errorf("%q: picked %q, want no lock", method, a.Name())
		}
	}
}

func TestFromProtoReadersShareAndWritersDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		i := interceptors.UnaryServerInterceptor(interceptors.FromProto(w.client))
		call := func(method string, inside func()) error {
			_, err := i(t.Context(), &text{Value: "42"}, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) {
				inside()
				return nil, nil
			})
			return err
		}
		err := call(methodRead, func() {
			if err := call(methodRead, func() {}); err != nil {
				t.Errorf("a second reader: %v", err)
			}
			start := time.Now()
			wantStatus(t, call(methodPay, func() { t.Error("a writer was served while a reader held the lock") }), codes.Aborted, interceptors.ReasonContended)
			if waited := time.Since(start); waited != 2*time.Second {
				t.Errorf("waited %v, want the declared 2s", waited)
			}
		})
		if err != nil {
			t.Error(err)
		}
		err = call(methodPay, func() {
			start := time.Now()
			wantStatus(t, call(methodRead, func() { t.Error("a reader was served while a writer held the lock") }), codes.Aborted, interceptors.ReasonContended)
			if waited := time.Since(start); waited != 0 {
				t.Errorf("waited %v, want the declared 0s", waited)
			}
		})
		if err != nil {
			t.Error(err)
		}
		err = call(methodBake, func() {
			if err := call(methodBake, func() {
				if err := call(methodBake, func() { t.Error("a third call got one of two permits") }); codeOf(err) != codes.Aborted {
					t.Errorf("a third permit: %v, want Aborted", err)
				}
			}); err != nil {
				t.Errorf("a second permit: %v", err)
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestDeclaredWaitCountsInsteadOfTheInterceptors(t *testing.T) {
	for _, c := range []struct {
		name string
		opt  interceptors.Option
		id   string
		wait time.Duration
	}{
		{"shorter", interceptors.WithWait(time.Minute), "42", 2 * time.Second},
		{"longer", interceptors.WithWait(0), "42", 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer w.Hold("orders/42")()
				label := interceptors.WithLabel(func(context.Context, interceptors.Call) string { return "req-7" })
				start := time.Now()
				_, err := callUnary(t.Context(), interceptors.UnaryServerInterceptor(interceptors.FromProto(w.client), c.opt, label), nil)
				wantStatus(t, err, codes.Aborted, interceptors.ReasonContended)
				if waited := time.Since(start); waited != c.wait {
					t.Errorf("waited %v, want %v", waited, c.wait)
				}
				// The declared wait also applies if a program calls the pick itself.
				start = time.Now()
				a := interceptors.FromProto(w.client)(t.Context(), interceptors.Call{FullMethod: methodPay, Request: &text{Value: c.id}})
				if _, err := a.Acquire(t.Context()); err == nil || time.Since(start) != 2*time.Second {
					t.Errorf("Acquire returned %v after %v, want an error after 2s", err, time.Since(start))
				}
			})
		})
	}
}

func TestLabelIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, pick := range []interceptors.Pick{w.fixed, interceptors.FromProto(w.client)} {
			i := interceptors.UnaryServerInterceptor(pick, interceptors.WithLabel(func(_ context.Context, c interceptors.Call) string { return "req" + c.FullMethod }))
			_, err := callUnary(t.Context(), i, func(context.Context, any) (any, error) {
				if dump := w.ensemble.Dump(); !strings.Contains(dump, "Shop/Pay") {
					t.Errorf("the label is not in the queue node:\n%s", dump)
				}
				return nil, nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
}

func TestFromProtoOnStreams(t *testing.T) {
	for name, opts := range map[string]func(interceptors.Pick, ...interceptors.Option) []any{"server": onServer, "client": onClient} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := &shop{
				upload: func(stream grpc.ClientStreamingServer[text, text]) error {
					_, err := stream.Recv()
					w.wantHeld()
					if err != nil {
						return err
					}
					_ = drain[text](stream)
					return stream.SendAndClose(&text{})
				},
				watch: func(_ *text, stream grpc.ServerStreamingServer[text]) error {
					w.wantHeld()
					return stream.Send(&text{})
				},
			}
			conn := serve(t, s, opts(interceptors.FromProto(w.client), interceptors.WithFirstMessage())...)
			for _, kind := range []string{"upload", "watch"} {
				if err := runStream(t.Context(), conn, kind, 3); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
			w.WantFree()
			if len(w.Locks()) != 2 {
				t.Errorf("%d locks were acquired, want 2", len(w.Locks()))
			}
			// Without WithFirstMessage the order's id is not known yet, which is an
			// error of the program.
			without := serve(t, &shop{}, opts(interceptors.FromProto(w.client))...)
			for _, kind := range []string{"upload", "watch"} {
				wantStatus(t, runStream(t.Context(), without, kind, 3), codes.Internal, interceptors.ReasonError)
			}
		})
	}
}

// services are the services of a server, for CheckProto.
type services []grpc.ServiceDesc

func (s services) GetServiceInfo() map[string]grpc.ServiceInfo {
	server := grpc.NewServer()
	for _, d := range s {
		server.RegisterService(&d, nil)
	}
	return server.GetServiceInfo()
}

// wrongDesc is the description of the service Wrong, as far as CheckProto reads it.
func wrongDesc(t *testing.T) grpc.ServiceDesc {
	t.Helper()
	found, err := protoregistry.GlobalFiles.FindDescriptorByName("zklock.test.shop.v1.Wrong")
	if err != nil {
		t.Fatal(err)
	}
	d := grpc.ServiceDesc{ServiceName: string(found.FullName()), HandlerType: (*any)(nil)}
	methods := found.(protoreflect.ServiceDescriptor).Methods()
	for i := range methods.Len() {
		d.Methods = append(d.Methods, grpc.MethodDesc{MethodName: string(methods.Get(i).Name())})
	}
	return d
}

func TestCheckProtoSaysWhatIsWrong(t *testing.T) {
	if err := interceptors.CheckProto(services{shopDesc}); err != nil {
		t.Errorf("the declarations of Shop are right, and CheckProto returned %v", err)
	}
	err := interceptors.CheckProto(services{shopDesc, wrongDesc(t)})
	if err == nil {
		t.Fatal("CheckProto found nothing wrong with the service Wrong")
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has several lines: %v", err)
	}
	lines := strings.Split(err.Error(), "; interceptors: ") // one for each declaration
	want := map[string]string{
		"Closed": "braces do not match", "Empty": "name is empty", "Field": `no field "nothing"`, "Kind": "want a string", "NoPermits": "without permits",
		"Open": "braces do not match", "Path": "not a path", "Permits": "need mode PERMIT", "Repeated": "is repeated", "Wait": "want a duration", "Negative": "want a duration",
	}
	if len(lines) != len(want) {
		t.Errorf("%d errors, want %d:\n%v", len(lines), len(want), err)
	}
	for method, text := range want {
		found := false
		for _, line := range lines {
			found = found || strings.Contains(line, "Wrong."+method+":") && strings.Contains(line, text)
		}
		if !found {
			t.Errorf("no line has the method %s and the text %q:\n%v", method, text, err)
		}
		pick := interceptors.FromProto(mem(t))
		code, reason, _ := refused(t, pick, interceptors.Call{FullMethod: "/zklock.test.shop.v1.Wrong/" + method, Request: order(t, `id: "1"`)})
		if code != codes.Internal || reason != interceptors.ReasonError {
			t.Errorf("a call of %s: code %v, reason %s; want Internal, LOCK_ERROR", method, code, reason)
		}
	}
}

// declare registers a service whose method M declares lock, as generated code does, and
// returns the method's full name.
func declare(t *testing.T, service string, lock *lockpb.Lock) string {
	t.Helper()
	method := "/zklock.test." + service + "/M"
	if _, err := protoregistry.GlobalFiles.FindFileByPath(service + ".proto"); err == nil {
		return method // an earlier run of the test has registered it
	}
	options := &descriptorpb.MethodOptions{}
	proto.SetExtension(options, lockpb.E_Lock, lock)
	request := proto.String(".zklock.test.shop.v1.Order")
	register(&descriptorpb.FileDescriptorProto{
		Name: proto.String(service + ".proto"), Package: proto.String("zklock.test"), Syntax: proto.String("proto3"),
		Dependency: []string{"shop.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: &service, Method: []*descriptorpb.MethodDescriptorProto{{
			Name: proto.String("M"), InputType: request, OutputType: request, Options: options,
		}}}},
	})
	return method
}

func TestBadNameInADeclarationIsTheProgramsFault(t *testing.T) {
	for service, name := range map[string]string{"Slashes": "orders//{id}", "Climbs": "../{id}", "Fixed": "orders/", "Control": "a\x01{id}", "Long": strings.Repeat("x", 513)} {
		method := declare(t, service, &lockpb.Lock{Name: name})
		log := newJournal()
		i := interceptors.UnaryServerInterceptor(interceptors.FromProto(mem(t)), interceptors.WithLogger(log.logger()))
		_, err := i(t.Context(), order(t, `id: "1"`), &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) {
			t.Error("the handler ran")
			return nil, nil
		})
		if codeOf(err) != codes.Internal || interceptors.Reason(err) != interceptors.ReasonError || !errors.Is(err, zklock.ErrMisuse) {
			t.Errorf("%q: error %v, reason %s; want Internal, LOCK_ERROR and ErrMisuse", name, err, interceptors.Reason(err))
		}
		<-log.wrote
		if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, service+".M") {
			t.Errorf("%q: logged %q, want level ERROR and the method", name, text)
		}
	}
	// If the declaration is right and a value makes the name invalid, the caller is at
	// fault.
	method := declare(t, "Good", &lockpb.Lock{Name: "orders/{id}"})
	synctest.Test(t, func(t *testing.T) {
		log := newJournal()
		i := interceptors.UnaryServerInterceptor(interceptors.FromProto(mem(t)), interceptors.WithLogger(log.logger()))
		_, err := i(t.Context(), order(t, `id: ".."`), &grpc.UnaryServerInfo{FullMethod: method}, nil)
		synctest.Wait()
		if codeOf(err) != codes.InvalidArgument || log.String() != "" {
			t.Errorf("error %v, logged %q; want InvalidArgument and no log", err, log)
		}
	})
}
