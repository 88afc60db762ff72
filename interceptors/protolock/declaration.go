// Package protolock is shared by the adapters for remote procedure calls. It chooses a call's
// lock by the fields of its request, and by the option that a method has in its .proto file. It
// is for adapters of this project: no promise of compatibility covers it.
package protolock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/zklock/go-zklock/interceptors/lockpb"
	"github.com/zklock/go-zklock/internal/naming"
	"github.com/zklock/go-zklock/internal/oneline"
	"github.com/zklock/go-zklock/zklock"
)

// Declarations are the declarations that were looked up so far.
type Declarations struct {
	owner  string // the adapter, for errors
	client *zklock.Client

	// known has a *declaration for each method that has one. Other methods are not
	// stored: a server that passes on unknown methods is called with any name.
	known sync.Map
}

// FromProto returns the declarations of all methods. owner is the adapter, for errors and for
// the panic if c is nil.
func FromProto(owner string, c *zklock.Client) *Declarations {
	naming.MustHaveClient(owner+": FromProto", c)
	return &Declarations{owner: owner, client: c}
}

// Pick returns the lock that the method declares for a request; nil if it declares none.
func (p *Declarations) Pick(fullMethod string, request any) zklock.Acquirer {
	known, ok := p.known.Load(fullMethod)
	if !ok {
		d := declarationOf(p.owner, fullMethod)
		if d == nil {
			return nil
		}
		known, _ = p.known.LoadOrStore(fullMethod, d)
	}
	return known.(*declaration).acquirer(p.client, request)
}

// Check returns an error for each wrong declaration of the methods; nil if there is none.
func Check(owner string, fullMethods []string) error {
	var errs []error
	for _, method := range fullMethods {
		if d := declarationOf(owner, method); d != nil && d.err != nil {
			errs = append(errs, d.err)
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return oneline.Join(errs...)
}

// declaration is the parsed declaration of a method.
type declaration struct {
	format  naming.Format
	fields  []fieldPath // of the values for the format
	mode    lockpb.Mode
	permits int
	wait    time.Duration
	options []zklock.AcquireOption // for the wait; empty: use the adapter's
	err     error                  // why the declaration is wrong
}

// declarationOf returns a method's declaration, or nil if it has none.
func declarationOf(owner, fullMethod string) *declaration {
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
		d = &declaration{err: fmt.Errorf("%s: option (zklock.v1.lock) of method %s: %w", owner, name, err)}
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
		d.wait, d.options = wait, []zklock.AcquireOption{zklock.WithWait(wait)}
	}
	texts, fields, err := parseTemplate(o.GetName())
	if err != nil {
		return nil, err
	}
	d.fields = fields
	// These are errors of the declaration and not of a call: whatever the fields contain, the name is
	// invalid, or the number of permits is.
	if d.format, err = naming.New(texts); err != nil {
		return nil, fmt.Errorf("name %q: %w", o.GetName(), err)
	}
	if d.permits < 0 || d.permits > zklock.MaxPermits {
		return nil, fmt.Errorf("name %q: %d permits: a semaphore has 1 to %d", o.GetName(), d.permits, zklock.MaxPermits)
	}
	for _, f := range fields {
		if err := f.check(request); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// parseTemplate parses a name with fields in braces. It returns the fields, and the texts around them.
func parseTemplate(name string) (texts []string, fields []fieldPath, err error) {
	if name == "" {
		return nil, nil, errors.New("the name is empty")
	}
	for rest := name; ; {
		text, behind, found := strings.Cut(rest, "{")
		path, behind, closed := strings.Cut(behind, "}")
		if strings.Contains(text, "}") || found != closed {
			return nil, nil, fmt.Errorf("name %q: the braces do not match: want each field as {field}", name)
		}
		if texts = append(texts, text); !found {
			return texts, fields, nil
		}
		field, err := parsePath(path)
		if err != nil {
			return nil, nil, fmt.Errorf("name %q: %w", name, err)
		}
		fields, rest = append(fields, field), behind
	}
}

// acquirer returns what a call acquires.
func (d *declaration) acquirer(c *zklock.Client, request any) zklock.Acquirer {
	if d.err != nil {
		return zklock.Refuse(fmt.Errorf("%w: %v", zklock.ErrMisuse, d.err))
	}
	name, refusal := d.name(request)
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
	if len(d.options) == 0 {
		return a
	}
	return &Declared{a, d.wait, d.options}
}

// name inserts the request's fields into the name. If that is not possible, it returns
// what to pick instead. Only the value of a single field is inserted unchanged: several are escaped,
// so that no values name the lock of others.
func (d *declaration) name(request any) (string, zklock.Acquirer) {
	switch len(d.fields) {
	case 0:
		return d.format.Join(nil), nil
	case 1:
		value, refusal := valueOf(request, d.fields[0])
		return d.format.With(value), refusal
	}
	values, refusal := valuesOf(request, d.fields)
	return d.format.Join(values), refusal
}

// Declared is an Acquirer with the declared wait, which replaces the adapter's.
type Declared struct {
	zklock.Acquirer
	Wait    time.Duration          // zero: it is a try
	Options []zklock.AcquireOption // for that wait; they must not be changed
}

// Acquire implements zklock.Acquirer, for programs that call a Pick themselves.
func (d *Declared) Acquire(ctx context.Context, opts ...zklock.AcquireOption) (*zklock.Lock, error) {
	return d.Acquirer.Acquire(ctx, append(opts[:len(opts):len(opts)], d.Options...)...)
}
