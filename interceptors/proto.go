package interceptors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/zklock/go-zklock/interceptors/lockpb"
	"github.com/zklock/go-zklock/internal/naming"
	"github.com/zklock/go-zklock/zklock"
)

// FromProto picks what a method's declaration says, in the option of
// zklock/v1/lock.proto:
//
//	rpc Pay(PayRequest) returns (PayReply) {
//	  option (zklock.v1.lock) = { name: "orders/{order_id}" mode: EXCLUSIVE wait: "2s" };
//	}
//
// Fields in braces are as those of ByField; a stream whose name has some needs
// WithFirstMessage. Methods without the option pass without a lock, as do those
// of services that are not in protoregistry.GlobalFiles, where generated code
// registers. A declaration that cannot be followed makes every call of the
// method fail with Internal, and is logged at level Error: see CheckProto.
//
// FromProto panics if c is nil.
func FromProto(c *zklock.Client) Pick {
	naming.MustHaveClient("interceptors: FromProto", c)
	p := &declarations{client: c}
	return p.pick
}

// CheckProto says what is wrong with the declarations of the services that are
// registered with a server, for its start: names without form, fields that the
// requests do not have, waits that are no durations.
func CheckProto(server interface {
	GetServiceInfo() map[string]grpc.ServiceInfo
}) error {
	var errs []error
	for service, info := range server.GetServiceInfo() {
		for _, method := range info.Methods {
			if d := declarationOf("/" + service + "/" + method.Name); d != nil && d.err != nil {
				errs = append(errs, d.err)
			}
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// declarations are those that were looked up so far.
type declarations struct {
	client *zklock.Client

	// known has a *declaration, or a nil one, for the methods that there are. A
	// server that passes on what it does not know is asked for any method, so
	// those that there are not stay out.
	known sync.Map
}

// pick is a Pick.
func (p *declarations) pick(_ context.Context, call Call) zklock.Acquirer {
	known, ok := p.known.Load(call.FullMethod)
	if !ok {
		d := declarationOf(call.FullMethod)
		if d == nil {
			return nil
		}
		known, _ = p.known.LoadOrStore(call.FullMethod, d)
	}
	return known.(*declaration).acquirer(p.client, call)
}

// declaration is what a method declares, taken apart.
type declaration struct {
	parts   []part
	texts   int // length of all texts in parts
	mode    lockpb.Mode
	permits int
	wait    []zklock.AcquireOption // empty: the interceptor's counts
	err     error                  // what is wrong with it
}

// part is a piece of a name: a text, or the field whose value goes there.
type part struct {
	text  string
	field fieldPath
}

// declarationOf returns what a method declares, or nil if that is nothing.
func declarationOf(fullMethod string) *declaration {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(fullMethod, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil
	}
	method, ok := found.(protoreflect.MethodDescriptor)
	if !ok || !proto.HasExtension(method.Options(), lockpb.E_Lock) {
		return nil
	}
	option, _ := proto.GetExtension(method.Options(), lockpb.E_Lock).(*lockpb.Lock)
	d, err := parseDeclaration(option, method.Input())
	if err != nil {
		d = &declaration{err: fmt.Errorf("interceptors: option (zklock.v1.lock) of method %s: %w", name, err)}
	}
	return d
}

func parseDeclaration(o *lockpb.Lock, request protoreflect.MessageDescriptor) (*declaration, error) {
	d := &declaration{mode: o.GetMode(), permits: int(o.GetPermits())}
	switch _, known := lockpb.Mode_name[int32(d.mode)]; {
	case !known:
		return nil, fmt.Errorf("mode %d is unknown", d.mode)
	case d.mode == lockpb.Mode_PERMIT && d.permits == 0:
		return nil, errors.New("mode PERMIT without permits: say how many there are")
	case d.mode != lockpb.Mode_PERMIT && d.permits != 0:
		return nil, fmt.Errorf("permits without mode PERMIT, with %v", d.mode)
	}
	if text := o.GetWait(); text != "" {
		wait, err := time.ParseDuration(text)
		if err != nil || wait < 0 {
			return nil, fmt.Errorf("wait %q is no duration such as 2s", text)
		}
		d.wait = []zklock.AcquireOption{zklock.WithWait(wait)}
	}
	var err error
	if d.parts, err = parseTemplate(o.GetName()); err != nil {
		return nil, err
	}
	if err := checkTemplate(d.parts, d.permits); err != nil {
		return nil, fmt.Errorf("name %q: %w", o.GetName(), err)
	}
	for _, p := range d.parts {
		d.texts += len(p.text)
		if err := p.field.check(request); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// parseTemplate takes a name with fields in braces apart.
func parseTemplate(name string) ([]part, error) {
	if name == "" {
		return nil, errors.New("the name is empty")
	}
	var parts []part
	for rest := name; rest != ""; {
		text, behind, found := strings.Cut(rest, "{")
		path, behind, closed := strings.Cut(behind, "}")
		if strings.Contains(text, "}") || found != closed {
			return nil, fmt.Errorf("name %q: every { needs its }", name)
		}
		if text != "" {
			parts = append(parts, part{text: text})
		}
		if found {
			field, err := parsePath(path)
			if err != nil {
				return nil, fmt.Errorf("name %q: %w", name, err)
			}
			parts = append(parts, part{field: field})
		}
		rest = behind
	}
	return parts, nil
}

// checkTemplate says what is wrong with a name whatever the fields hold, and with
// the number of permits: it would not be the caller's fault.
func checkTemplate(parts []part, permits int) error {
	var name strings.Builder
	for _, p := range parts {
		if p.field == nil {
			name.WriteString(p.text)
		} else {
			name.WriteString("x")
		}
	}
	switch err := zklock.CheckName(name.String()); {
	case err != nil:
		return err
	case permits < 0 || permits > zklock.MaxPermits:
		return fmt.Errorf("%d permits: a semaphore has 1 to %d", permits, zklock.MaxPermits)
	}
	return nil
}

// acquirer is what a call is to acquire.
func (d *declaration) acquirer(c *zklock.Client, call Call) zklock.Acquirer {
	if d.err != nil {
		return naming.Refusal{Err: fmt.Errorf("%w: %w", zklock.ErrMisuse, d.err)}
	}
	name, refusal := d.name(call)
	if refusal != nil {
		return refusal
	}
	var a zklock.Acquirer
	switch d.mode {
	case lockpb.Mode_SHARED:
		a = c.RWMutex(name).Reader()
	case lockpb.Mode_PERMIT:
		a = c.Semaphore(name, d.permits)
	default:
		a = c.Mutex(name)
	}
	if len(d.wait) == 0 {
		return a
	}
	return &declared{a, d.wait}
}

// name puts the request's fields into the name, or says what to pick instead.
func (d *declaration) name(call Call) (string, zklock.Acquirer) {
	if len(d.parts) == 1 && d.parts[0].field == nil {
		return d.parts[0].text, nil
	}
	m, refusal := requestOf(call)
	if refusal != nil {
		return "", refusal
	}
	var b strings.Builder
	b.Grow(d.texts + 32*(len(d.parts)-1)) // enough for most, in one piece
	for _, p := range d.parts {
		if p.field == nil {
			b.WriteString(p.text)
			continue
		}
		value, err := p.field.value(m)
		if err != nil {
			return "", naming.Refusal{Err: err}
		}
		if value == "" {
			return "", Missing()
		}
		b.WriteString(value)
	}
	return b.String(), nil
}

// declared is an Acquirer with a wait of its own, instead of the interceptor's.
type declared struct {
	zklock.Acquirer
	wait []zklock.AcquireOption
}

// Acquire implements zklock.Acquirer, for those who call it themselves.
func (d *declared) Acquire(ctx context.Context, opts ...zklock.AcquireOption) (*zklock.Lock, error) {
	return d.Acquirer.Acquire(ctx, slices.Concat(opts, d.wait)...)
}
