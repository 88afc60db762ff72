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

// FromProto picks the lock that a method's declaration names, in the option of
// zklock/v1/lock.proto:
//
//	rpc Pay(PayRequest) returns (PayReply) {
//	  option (zklock.v1.lock) = { name: "orders/{order_id}" mode: EXCLUSIVE wait: "2s" };
//	}
//
// Fields in braces follow the rules of ByField. A stream whose name has such fields needs
// WithFirstMessage. Methods without the option need no lock. Nor do those of services
// that are not in protoregistry.GlobalFiles, where generated code registers. If a
// declaration is wrong, every call of the method fails with Internal, and is logged at
// level Error. CheckProto finds such declarations.
//
// FromProto panics if c is nil.
func FromProto(c *zklock.Client) Pick {
	naming.MustHaveClient("interceptors: FromProto", c)
	p := &declarations{client: c}
	return p.pick
}

// CheckProto checks the declarations of all services that are registered with a server.
// Call it at the start of a program. It returns nil, or an error for each wrong
// declaration: an invalid name, a field that the request does not have, a wait that is
// not a duration, or a mode that does not go with the permits.
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

// declarations are the declarations that were looked up so far.
type declarations struct {
	client *zklock.Client

	// known has a *declaration for each method that has one. Other methods are not
	// stored: a server that passes on unknown methods is called with any name.
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

// declaration is the parsed declaration of a method.
type declaration struct {
	parts   []part
	texts   int // length of all texts in parts
	mode    lockpb.Mode
	permits int
	wait    []zklock.AcquireOption // empty: use the interceptor's
	err     error                  // why the declaration is wrong
}

// part is a piece of a name: a text, or a field whose value is inserted.
type part struct {
	text  string
	field fieldPath
}

// declarationOf returns a method's declaration, or nil if it has none.
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
		return nil, errors.New("mode PERMIT without permits: set permits to their number")
	case d.mode != lockpb.Mode_PERMIT && d.permits != 0:
		return nil, fmt.Errorf("permits with mode %v: they need mode PERMIT", d.mode)
	}
	if text := o.GetWait(); text != "" {
		wait, err := time.ParseDuration(text)
		if err != nil || wait < 0 {
			return nil, fmt.Errorf("wait %q: want a duration of zero or more, such as 2s", text)
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

// parseTemplate parses a name with fields in braces.
func parseTemplate(name string) ([]part, error) {
	if name == "" {
		return nil, errors.New("the name is empty")
	}
	var parts []part
	for rest := name; rest != ""; {
		text, behind, found := strings.Cut(rest, "{")
		path, behind, closed := strings.Cut(behind, "}")
		if strings.Contains(text, "}") || found != closed {
			return nil, fmt.Errorf("name %q: the braces do not match: want each field as {field}", name)
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

// checkTemplate returns an error if the name is invalid whatever the fields contain, or
// if the number of permits is. These are errors of the declaration and not of a call.
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

// acquirer returns what a call acquires.
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

// name inserts the request's fields into the name. If that is not possible, it returns
// what to pick instead.
func (d *declaration) name(call Call) (string, zklock.Acquirer) {
	if len(d.parts) == 1 && d.parts[0].field == nil {
		return d.parts[0].text, nil
	}
	m, refusal := requestOf(call)
	if refusal != nil {
		return "", refusal
	}
	var b strings.Builder
	b.Grow(d.texts + 32*(len(d.parts)-1)) // enough for most names, in one allocation
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

// declared is an Acquirer with the declared wait, which replaces the interceptor's.
type declared struct {
	zklock.Acquirer
	wait []zklock.AcquireOption
}

// Acquire implements zklock.Acquirer, for programs that call a Pick themselves.
func (d *declared) Acquire(ctx context.Context, opts ...zklock.AcquireOption) (*zklock.Lock, error) {
	return d.Acquirer.Acquire(ctx, slices.Concat(opts, d.wait)...)
}
