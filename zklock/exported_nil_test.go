package zklock_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/fence"
)

// A program may call any method on a handle that is nil, or that no function of the library has made, and may pass nil functions,
// nil slices, slices of nils, and options that are nil. No method panics, waits, or reports success. A Lock, or a Term, is none of these
// handles: a program has it from a call without an error.
func TestMethodsOfNilAndZeroHandles(t *testing.T) {
	for _, zero := range []any{&zklock.Client{}, &zklock.Mutex{}, &zklock.RWMutex{}, &zklock.Reader{}, &zklock.Semaphore{},
		&election.Election{}, &fence.Guard{}} {
		for _, handle := range []reflect.Value{reflect.ValueOf(zero), reflect.Zero(reflect.TypeOf(zero))} {
			for i := range handle.NumMethod() {
				what := fmt.Sprintf("%T.%s", zero, handle.Type().Method(i).Name)
				if handle.IsNil() {
					what += " of nil"
				}
				for _, nils := range []bool{false, true} {
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						defer func() {
							if v := recover(); v != nil {
								t.Errorf("%s (slices of nils: %v) panics: %v", what, nils, v)
							}
						}()
						callWithNils(t, what, handle.Method(i), nils)
					}()
					select {
					case <-ended:
					case <-time.After(time.Minute):
						t.Errorf("%s waits", what)
					}
				}
			}
		}
	}
}

// callWithNils calls a method with a context, and else with zero values; with nils, the last slice has a nil. Its error must not be nil.
func callWithNils(t *testing.T, what string, method reflect.Value, nils bool) {
	of := method.Type()
	var args []reflect.Value
	for i := range of.NumIn() {
		switch in := of.In(i); {
		case in == reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(t.Context()))
		case in.Kind() == reflect.Slice && nils:
			args = append(args, reflect.MakeSlice(in, 1, 1))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	call := method.Call
	if of.IsVariadic() {
		call = method.CallSlice
	}
	for _, out := range call(args) {
		switch {
		case out.Type() == reflect.TypeFor[error]() && out.IsNil():
			t.Errorf("%s reports success", what)
		case out.Type().CanSeq2():
			for _, err := range out.Seq2() {
				if err.Type() == reflect.TypeFor[error]() && err.IsNil() {
					t.Errorf("%s yields no error", what)
				}
			}
		}
	}
}
