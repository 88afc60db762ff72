// Package gin has the names of the real one that the tests call.
package gin

import (
	"context"
	"time"
)

type Context struct{ Request *Request }

type Request struct{}

func (*Request) Context() context.Context { return nil }

func (*Context) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
func (*Context) Done() <-chan struct{}                   { return nil }
func (*Context) Err() error                              { return nil }
func (*Context) Value(key any) any                       { return nil }

type HandlerFunc func(*Context)

type IRoutes interface{}

type Engine struct{ ContextWithFallback bool }

func (*Engine) POST(path string, handlers ...HandlerFunc) IRoutes { return nil }
