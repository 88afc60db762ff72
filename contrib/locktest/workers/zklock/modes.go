package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
)

// acquire waits for a lock that one client at a time has, and no reader.
type acquire func(ctx context.Context, c *zklock.Client, name string) (*zklock.Lock, error)

// mode is a way to use zklock.
type mode struct {
	root    string // of the names
	keys    string // further keys of the URL
	acquire acquire
}

// own is the root of the locks that only zklock uses.
const own = "/locktest"

// modes are the modes, by the argument of the worker. Those of the dialects use the same names as the workers
// of the other libraries.
var modes = map[string]mode{
	"mutex":    {own, "", mutex()},
	"alone":    {own, "", mutex(zklock.WithoutHandover())},                  // each goroutine has a queue node of its own
	"async":    {own, "", mutex(zklock.WithAsyncRelease())},                 // a release waits for no answer
	"keep":     {own, "&keep=2s", mutex()},                                  // a name that a client uses alone is kept
	"sessions": {own, "&pool_max_sessions=4&pool_max_lifetime=2s", mutex()}, // four sessions, each replaced when it is old
	"dir":      {own, "&session_dir=" + nextToProgram("sessions"), mutex()}, // the locks of a killed process are free at once
	"writer":   {own, "", writer},                                           // there are readers in the same queue
	"all":      {own, "", new(pairs).acquire},                               // two names at a time
	"election": {own, "", campaign},                                         // a term is a hold
	"curator":  {"/locktest-curator", "&dialect=curator", mutex()},
	"kazoo":    {"/locktest-kazoo", "&dialect=kazoo", mutex()},
	"zk":       {"/locktest-zk", "&dialect=zk", mutex()},
}

// chosen returns the mode that the arguments name, or mutex.
func chosen(args []string) (mode, error) {
	name := "mutex"
	if len(args) > 0 {
		name = args[0]
	}
	m, ok := modes[name]
	if !ok {
		return m, fmt.Errorf("there is no mode %q: choose one of %q", name, slices.Sorted(maps.Keys(modes)))
	}
	return m, nil
}

// nextToProgram is a path in the folder of the program, which the workers of a run share.
func nextToProgram(name string) string {
	program, _ := os.Executable() // without it, the path is in the working directory
	return filepath.Join(filepath.Dir(program), name)
}

func mutex(options ...zklock.AcquireOption) acquire {
	return func(ctx context.Context, c *zklock.Client, name string) (*zklock.Lock, error) {
		return c.Mutex(name).Acquire(ctx, options...)
	}
}

// writer reads before it writes: it acquires and releases the reader first.
func writer(ctx context.Context, c *zklock.Client, name string) (*zklock.Lock, error) {
	rw := c.RWMutex(name)
	reader, err := rw.Reader().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	_ = reader.Release(ctx) // a reader that was lost is gone as well
	return rw.Writer().Acquire(ctx)
}

// pairs acquires each name together with the name that this process was asked for before.
type pairs struct{ last atomic.Value }

func (p *pairs) acquire(ctx context.Context, c *zklock.Client, name string) (*zklock.Lock, error) {
	before, _ := p.last.Swap(name).(string)
	if before == "" {
		before = name
	}
	return zklock.All(c.Mutex(name), c.Mutex(before)).Acquire(ctx)
}

// campaign stands for election and leads. A term is a lock, whose release is a resignation.
func campaign(ctx context.Context, c *zklock.Client, name string) (*zklock.Lock, error) {
	term, err := election.New(c, name).Campaign(ctx)
	if err != nil {
		return nil, err
	}
	return term.Lock, nil
}
