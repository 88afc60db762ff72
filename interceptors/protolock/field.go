package protolock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/zklock/go-zklock/internal/naming"
	"github.com/zklock/go-zklock/zklock"
)

// ByField returns a function that picks a mutex by a field of a request message, as ByField of
// an adapter does. owner is the adapter's function, for panics.
func ByField(owner string, c *zklock.Client, path, format string) func(request any) zklock.Acquirer {
	naming.MustHaveClient(owner, c)
	name := naming.MustParse(owner, format, 1)
	fields, err := parsePath(path)
	if err != nil {
		panic(owner + ": " + err.Error())
	}
	return func(request any) zklock.Acquirer {
		value, refusal := valueOf(request, fields)
		if refusal != nil {
			return refusal
		}
		return c.Mutex(name.With(value))
	}
}

// valueOf returns the value of a field of a request, or what to pick instead.
func valueOf(request any, field fieldPath) (value string, refusal zklock.Acquirer) {
	m, refusal := requestOf(request)
	if refusal != nil {
		return "", refusal
	}
	switch value, err := field.value(m); {
	case err != nil:
		return "", zklock.Refuse(err)
	case value == "":
		return "", naming.Missing()
	default:
		return value, nil
	}
}

// ByFields returns a function that picks a mutex by several fields of a request message, as ByFields
// of an adapter does. owner is the adapter's function, for panics.
func ByFields(owner string, c *zklock.Client, format string, paths []string) func(request any) zklock.Acquirer {
	naming.MustHaveClient(owner, c)
	name := naming.MustParse(owner, format, len(paths))
	fields := make([]fieldPath, len(paths))
	for i, path := range paths {
		var err error
		if fields[i], err = parsePath(path); err != nil {
			panic(owner + ": " + err.Error())
		}
	}
	return func(request any) zklock.Acquirer {
		values, refusal := valuesOf(request, fields)
		if refusal != nil {
			return refusal
		}
		return c.Mutex(name.Join(values))
	}
}

// valuesOf returns the values of several fields of a request, or what to pick instead. A path that
// the request lacks is an error of the program, also if another field is not set.
func valuesOf(request any, fields []fieldPath) (values []string, refusal zklock.Acquirer) {
	m, refusal := requestOf(request)
	if refusal != nil {
		return nil, refusal
	}
	values = make([]string, len(fields))
	for i, field := range fields {
		value, err := field.value(m)
		if err != nil {
			return nil, zklock.Refuse(err)
		}
		if values[i] = value; value == "" {
			refusal = naming.Missing()
		}
	}
	return values, refusal
}

// NoMessage is picked if the name needs a field of a message, and none was sent.
var NoMessage zklock.Acquirer = zklock.Refuse(fmt.Errorf("%w: the stream ended before its first message, which names the lock", zklock.ErrInvalidName))

// TooEarly replaces NoMessage where the lock is acquired before the first message.
var TooEarly zklock.Acquirer = zklock.Refuse(errors.New("a field of the stream's first message names the lock: give the interceptor WithFirstMessage"))

// requestOf returns a request as a message, or what to pick instead.
func requestOf(request any) (protoreflect.Message, zklock.Acquirer) {
	switch m := request.(type) {
	case nil:
		return nil, NoMessage
	case proto.Message:
		return m.ProtoReflect(), nil
	case protoadapt.MessageV1:
		return protoadapt.MessageV2Of(m).ProtoReflect(), nil
	}
	return nil, zklock.Refuse(fmt.Errorf("the request is a %T: want a protobuf message", request))
}

// fieldPath is the path to a field through the messages that contain it.
type fieldPath []protoreflect.Name

// parsePath parses a path with dots.
func parsePath(path string) (fieldPath, error) {
	var p fieldPath
	for part := range strings.SplitSeq(path, ".") {
		name := protoreflect.Name(part)
		if !name.IsValid() {
			return nil, fmt.Errorf("%q is not a path of fields: want names with dots between them, such as order.id", path)
		}
		p = append(p, name)
	}
	return p, nil
}

// step returns the i-th field of the path, in the message m that contains it.
func (p fieldPath) step(i int, m protoreflect.MessageDescriptor) (protoreflect.FieldDescriptor, error) {
	f := m.Fields().ByName(p[i])
	switch {
	case f == nil:
		return nil, fmt.Errorf("message %s has no field %q", m.FullName(), p[i])
	case f.Cardinality() == protoreflect.Repeated:
		return nil, fmt.Errorf("field %s is repeated: want a field with one value", f.FullName())
	case i < len(p)-1 && f.Message() == nil:
		return nil, fmt.Errorf("field %s is not a message, and has no field %q", f.FullName(), p[i+1])
	case i == len(p)-1 && !nameable(f.Kind()):
		return nil, fmt.Errorf("field %s is of type %v: want a string, a whole number, a bool or an enum", f.FullName(), f.Kind())
	}
	return f, nil
}

// check returns an error if messages of type m do not have the path.
func (p fieldPath) check(m protoreflect.MessageDescriptor) error {
	for i := range p {
		f, err := p.step(i, m)
		if err != nil {
			return err
		}
		m = f.Message()
	}
	return nil
}

// value returns the text of the field's value; "" if it is not set.
func (p fieldPath) value(m protoreflect.Message) (string, error) {
	for i := range p {
		f, err := p.step(i, m.Descriptor())
		if err != nil {
			return "", err
		}
		if !m.Has(f) {
			// The rest of the path may be wrong too. That is an error of the program, so report it
			// as one.
			if f.Message() != nil {
				return "", p[i+1:].check(f.Message())
			}
			return "", nil
		}
		if i == len(p)-1 {
			return text(f, m.Get(f)), nil
		}
		m = m.Get(f).Message()
	}
	return "", nil
}

// nameable reports whether values of a kind can be part of a name.
func nameable(k protoreflect.Kind) bool {
	switch k {
	case protoreflect.BytesKind, protoreflect.FloatKind, protoreflect.DoubleKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return false
	}
	return true
}

// text returns a value as part of a name. It has a case for each kind, because
// Value.Interface would allocate.
func text(f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch f.Kind() {
	case protoreflect.StringKind:
		return v.String()
	case protoreflect.BoolKind:
		return strconv.FormatBool(v.Bool())
	case protoreflect.EnumKind:
		if e := f.Enum().Values().ByNumber(v.Enum()); e != nil {
			return string(e.Name())
		}
		return strconv.FormatInt(int64(v.Enum()), 10)
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		return strconv.FormatUint(v.Uint(), 10)
	}
	return strconv.FormatInt(v.Int(), 10) // the other nameable kinds
}
