package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// member is a replica as the story sees it: it takes orders, and can be killed or
// paused. Its methods are for one goroutine at a time.
type member struct {
	orders  io.WriteCloser
	answers chan string // closed when the replica has ended
	kill    func() error
	pause   func() (resume func() error, err error)
	end     func() // ends the replica if it runs, and returns when it does not
}

// ask gives an order and returns the answer.
func (m *member) ask(ctx context.Context, order string) (string, error) {
	if err := m.order(order); err != nil {
		return "", err
	}
	return m.answer(ctx)
}

func (m *member) order(order string) error {
	_, err := fmt.Fprintln(m.orders, order)
	return err
}

func (m *member) answer(ctx context.Context) (string, error) {
	select {
	case answer, ok := <-m.answers:
		if !ok {
			return "", errors.New("a replica has ended unexpectedly")
		}
		if reason, bad := strings.CutPrefix(answer, failed); bad {
			return "", fmt.Errorf("a replica failed: %s", reason)
		}
		return answer, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// fleet starts replicas: as processes if the ensemble is a real one, as goroutines if it
// is in the memory of this process.
type fleet struct {
	url      string              // the ensemble's, unless there is
	ensemble *memdriver.Ensemble // one in memory
	timeout  time.Duration       // of sessions
	tick     time.Duration       // how late the ensemble may notice the end of a timeout
}

// newFleet makes a fleet for an ensemble. In memory, timeouts are short: a newcomer waits
// for two of them.
func newFleet(url string) (*fleet, error) {
	if strings.HasPrefix(url, "mem://") {
		tick := 500 * time.Millisecond
		return &fleet{ensemble: memdriver.New(memdriver.WithTickTime(tick)), timeout: 3 * time.Second, tick: tick}, nil
	}
	f := &fleet{url: url, timeout: 10 * time.Second, tick: 3 * time.Second} // the defaults of URLs
	for key, d := range map[string]*time.Duration{"session_timeout": &f.timeout, "tick_time": &f.tick} {
		_, rest, ok := strings.Cut(url, key+"=")
		if !ok {
			continue
		}
		value, _, _ := strings.Cut(rest, "&")
		var err error
		if *d, err = time.ParseDuration(value); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *fleet) close() {
	if f.ensemble != nil {
		_ = f.ensemble.Close()
	}
}

// start starts a replica of a shop, and waits until it has its session.
func (f *fleet) start(ctx context.Context, shop string) (*member, error) {
	if f.ensemble != nil {
		return f.startGoroutine(ctx, shop)
	}
	return f.startProcess(ctx, shop)
}

// ready waits until the replica has its session, and ends it if it gets none.
func (m *member) ready(ctx context.Context) (*member, error) {
	if _, err := m.answer(ctx); err != nil {
		m.end()
		return nil, err
	}
	return m, nil
}

// replicaEnv makes this program a replica of the shop at the address that it holds;
// urlEnv is the ensemble's URL, which may contain a password: other users of the machine
// can read arguments.
const (
	replicaEnv = "QUICKSTART_REPLICA"
	urlEnv     = "QUICKSTART_URL"
)

func (f *fleet) startProcess(ctx context.Context, shop string) (*member, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), replicaEnv+"="+shop, urlEnv+"="+f.url)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var reading sync.WaitGroup
	m := &member{orders: in, answers: make(chan string, 1), kill: cmd.Process.Kill}
	reading.Go(func() { m.read(out) })
	m.pause = func() (func() error, error) { return pauseProcess(cmd.Process) }
	m.end = func() {
		_ = cmd.Process.Kill()
		m.drain()
		reading.Wait()
		_ = cmd.Wait()
	}
	return m.ready(ctx)
}

// startGoroutine starts a replica in this process. Killed or paused, its session is
// frozen: it sends nothing, as that of a process that was killed or paused.
func (f *fleet) startGoroutine(ctx context.Context, shop string) (*member, error) {
	client, err := zklock.OpenConnector(f.ensemble.Connector(), zklock.WithParams(url.Values{
		"session_timeout": {f.timeout.String()}, "tick_time": {f.tick.String()}, "pool_max_sessions": {"1"},
	}))
	if err != nil {
		return nil, err
	}
	others := f.ensemble.Sessions()
	ctx, cancel := context.WithCancel(ctx)
	in, orders := io.Pipe()
	answers, out := io.Pipe()
	var running sync.WaitGroup
	m := &member{orders: orders, answers: make(chan string, 1)}
	running.Go(func() {
		defer out.Close()
		defer client.Close()
		runReplica(ctx, client, shop, in, out)
	})
	running.Go(func() { m.read(answers) })

	var own []int64 // its sessions
	var thaws []func()
	thaw := func() error {
		for _, thaw := range thaws {
			thaw()
		}
		return nil
	}
	m.pause = func() (func() error, error) {
		for _, id := range own {
			thaws = append(thaws, f.ensemble.Freeze(id))
		}
		return thaw, nil
	}
	m.kill = func() error {
		_, err := m.pause()
		return err
	}
	m.end = func() {
		_ = thaw()
		cancel()
		_ = orders.Close()
		m.drain()
		running.Wait()
	}
	if _, err := m.ready(ctx); err != nil {
		return nil, err
	}
	own = slices.DeleteFunc(f.ensemble.Sessions(), func(id int64) bool { return slices.Contains(others, id) })
	return m, nil
}

// read takes in the answers until there are no more.
func (m *member) read(from io.Reader) {
	defer close(m.answers)
	for lines := bufio.NewScanner(from); lines.Scan(); {
		m.answers <- lines.Text()
	}
}

// drain discards the answers of a replica that ends, until there are no more.
func (m *member) drain() {
	for range m.answers {
	}
}
