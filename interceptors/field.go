package interceptors

import (
	"context"
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

// ByField picks the mutex named by a field of the request message, put into
// format in place of its %s. path names the field as the .proto does, and with
// dots those of the messages that it is in: "order.id". It may be a string, a
// whole number, a bool or an enum, of which the name counts.
//
// It is for methods whose requests have the field: ByMethod gives it those, and
// lets calls for health checks and reflection pass.
//
// A call is refused with InvalidArgument, see Optional, if the field is not set;
// of fields without presence, which are all but optional and oneof ones in
// proto3, if it is empty, 0 or false. A request that cannot have the field at
// all is the program's error, and Internal. Streams need WithFirstMessage.
//
// On a server the value comes from the client: it is put in as it is, so a lock
// may be taken under any name that begins and ends as format does. ByField
// panics if c is nil, if path is none, and if format does not have one %s or makes
// no name that a lock can have.
func ByField(c *zklock.Client, path, format string) Pick {
	naming.MustHaveClient("interceptors: ByField", c)
	name := naming.MustParse("interceptors: ByField", format)
	fields, err := parsePath(path)
	if err != nil {
		panic("interceptors: ByField: " + err.Error())
	}
	return func(_ context.Context, call Call) zklock.Acquirer {
		m, refusal := requestOf(call)
		if refusal != nil {
			return refusal
		}
		value, err := fields.value(m)
		if err != nil {
			return naming.Refusal{Err: err}
		}
		if value == "" {
			return Missing()
		}
		return c.Mutex(name.With(value))
	}
}

// noMessage is picked where a field is wanted of a message that there is not.
var noMessage zklock.Acquirer = naming.Refusal{Err: fmt.Errorf("%w: the stream ended before a message named it", zklock.ErrInvalidName)}

// tooEarly stands for noMessage where streams are locked before any message.
var tooEarly zklock.Acquirer = naming.Refusal{Err: errors.New("the stream is to be locked by a field of its first message: give the interceptor WithFirstMessage")}

// requestOf returns the request message of a call, or what to pick instead.
func requestOf(call Call) (protoreflect.Message, zklock.Acquirer) {
	switch m := call.Request.(type) {
	case nil:
		return nil, noMessage
	case proto.Message:
		return m.ProtoReflect(), nil
	case protoadapt.MessageV1:
		return protoadapt.MessageV2Of(m).ProtoReflect(), nil
	}
	return nil, naming.Refusal{Err: fmt.Errorf("the request is a %T, and not a protobuf message", call.Request)}
}

// fieldPath is the way to a field through the messages that it is in.
type fieldPath []protoreflect.Name

// parsePath reads a path with dots.
func parsePath(path string) (fieldPath, error) {
	var p fieldPath
	for part := range strings.SplitSeq(path, ".") {
		name := protoreflect.Name(part)
		if !name.IsValid() {
			return nil, fmt.Errorf("%q is no path of fields: want names with dots between, such as order.id", path)
		}
		p = append(p, name)
	}
	return p, nil
}

// step finds the i-th field of the path in the message that it is in.
func (p fieldPath) step(i int, m protoreflect.MessageDescriptor) (protoreflect.FieldDescriptor, error) {
	f := m.Fields().ByName(p[i])
	switch {
	case f == nil:
		return nil, fmt.Errorf("message %s has no field %q", m.FullName(), p[i])
	case f.Cardinality() == protoreflect.Repeated:
		return nil, fmt.Errorf("field %s is repeated, and does not have one value", f.FullName())
	case i < len(p)-1 && f.Message() == nil:
		return nil, fmt.Errorf("field %s is no message, and has no field %q", f.FullName(), p[i+1])
	case i == len(p)-1 && !nameable(f.Kind()):
		return nil, fmt.Errorf("field %s is of type %v: want a string, a whole number, a bool or an enum", f.FullName(), f.Kind())
	}
	return f, nil
}

// check says what is wrong with the path for messages of that type.
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
			// The rest of the path may be wrong all the same, and whoever sees
			// calls refused for it wants to know.
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

// text is a value as part of a name. It goes by the kind, since a value that is
// asked for as an interface allocates one.
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
	return strconv.FormatInt(v.Int(), 10) // of the kinds that are nameable, the rest
}
