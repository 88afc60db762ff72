package servers

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/internal/child"
)

// Command is how to run a server.
type Command struct {
	// Path is the program. It must not go into the background.
	Path string

	// Args are its arguments.
	Args []string

	// Env has variables in addition to those of this process.
	Env []string

	// Addr is the address for clients.
	Addr string

	// Log is the file that the server's output goes to; "": none.
	Log string

	// Ready returns no error if the server at an address serves; nil: if it accepts connections.
	Ready func(ctx context.Context, addr string) error

	// Leads reports whether the server at an address leads the others; nil: it never does.
	Leads func(ctx context.Context, addr string) (bool, error)

	// Status is what the server at an address knows of its clients, for a person to read; nil: nothing.
	Status func(ctx context.Context, addr string) (string, error)

	// Data is the folder of a ZooKeeper server's transaction logs; "": it is another server.
	Data string

	// Peers is the way of bytes between this server and the others; nil: there is none that Cut could use.
	Peers *fault.Link

	// Clock is the wall clock of the server; nil: that of the machine.
	Clock *fault.Clock
}

// Processes is an ensemble of processes. It implements [Ensemble].
type Processes struct {
	commands []Command
	running  []*child.Process // nil: the server was killed
	slow     []*child.Process // the tracers that make fsync slow; nil: none does
}

// Run starts the servers. It does not wait until they serve: see Await.
func Run(commands []Command) (*Processes, error) {
	p := &Processes{commands: commands, running: make([]*child.Process, len(commands)), slow: make([]*child.Process, len(commands))}
	for i := range commands {
		if err := p.Start(i); err != nil {
			return nil, cmp.Or(err, p.Close())
		}
	}
	return p, nil
}

// Addrs are the addresses for clients.
func (p *Processes) Addrs() []string {
	var addrs []string
	for _, c := range p.commands {
		addrs = append(addrs, c.Addr)
	}
	return addrs
}

// Logs are the folders of the transaction logs of ZooKeeper servers; none: they are others.
func (p *Processes) Logs() []string {
	var dirs []string
	for _, c := range p.commands {
		if c.Data != "" {
			dirs = append(dirs, c.Data)
		}
	}
	return dirs
}

// Kill ends a server by SIGKILL and waits for its end. The server may have ended already.
func (p *Processes) Kill(server int) error {
	if r := p.running[server]; r != nil {
		r.Kill()
		p.running[server] = nil
	}
	return nil
}

// Stop sends SIGSTOP or SIGCONT.
func (p *Processes) Stop(server int, stopped bool) error {
	switch r := p.running[server]; {
	case r == nil:
		return nil
	case stopped:
		return r.Stop()
	default:
		return r.Continue()
	}
}

// Start starts a server that does not run.
func (p *Processes) Start(server int) error {
	if r := p.running[server]; r != nil && !r.Over() {
		return fmt.Errorf("start server %d: it is running already", server+1)
	}
	r, err := start(p.commands[server])
	if err != nil {
		return fmt.Errorf("start server %d: %w", server+1, err)
	}
	p.running[server] = r
	return nil
}

// patience is how long a server may take until it has ended by itself.
const patience = 5 * time.Second

// Restart ends a server by SIGTERM, and by SIGKILL if it takes too long. Then it starts the server and waits.
func (p *Processes) Restart(ctx context.Context, server int) error {
	if r := p.running[server]; r != nil {
		if err := r.Terminate(); err != nil {
			return err
		}
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-r.Done():
		case <-timer.C:
		}
	}
	if err := cmp.Or(p.Kill(server), p.Start(server)); err != nil {
		return err
	}
	return p.await(ctx, server)
}

// Leader asks the servers that run.
func (p *Processes) Leader(ctx context.Context) (int, error) {
	var failed error
	for i, c := range p.commands {
		if c.Leads == nil || p.running[i] == nil {
			continue
		}
		leads, err := c.Leads(ctx, c.Addr)
		if leads {
			return i, nil
		}
		failed = cmp.Or(failed, err)
	}
	return -1, failed
}

// Status is what the servers that run know of their clients, for a person to read. A server that does not answer has
// the error in its place.
func (p *Processes) Status(ctx context.Context) string {
	var b strings.Builder
	for i, c := range p.commands {
		if c.Status == nil || p.running[i] == nil {
			continue
		}
		fmt.Fprintf(&b, "server %d:\n", i+1)
		text, err := c.Status(ctx, c.Addr)
		b.WriteString(text)
		if err != nil {
			fmt.Fprintf(&b, "%v\n", err)
		}
	}
	return b.String()
}

// Cut breaks the server's Peers.
func (p *Processes) Cut(server int, cut bool) bool {
	peers := p.commands[server].Peers
	switch {
	case peers == nil:
		return false
	case cut:
		peers.Break(fault.CutClient)
	default:
		peers.Heal()
	}
	return true
}

// Slow has strace delay the system calls of the server's process. It returns when strace does, or an error.
func (p *Processes) Slow(server int, by time.Duration) error {
	if s := p.slow[server]; s != nil {
		s.Kill() // the kernel lets the server go on
		p.slow[server] = nil
	}
	r := p.running[server]
	if by == 0 || r == nil {
		return nil
	}
	tracer, err := trace(r.PID(), by)
	if err != nil {
		return fmt.Errorf("server %d: %w", server+1, err)
	}
	p.slow[server] = tracer
	return nil
}

// Jump sets the server's Clock.
func (p *Processes) Jump(server int, by time.Duration) error {
	if p.commands[server].Clock == nil {
		return fmt.Errorf("server %d has no clock of its own", server+1)
	}
	return p.commands[server].Clock.Set(by)
}

// Close ends all servers.
func (p *Processes) Close() error {
	var err error
	for i, c := range p.commands {
		err = cmp.Or(err, p.Slow(i, 0), p.Kill(i))
		if c.Peers != nil {
			err = cmp.Or(err, c.Peers.Close())
		}
	}
	return err
}

// Await waits until each server serves that was not killed. It returns an error if one ends before that, or
// when ctx ends.
func (p *Processes) Await(ctx context.Context) error {
	for i := range p.commands {
		if err := p.await(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (p *Processes) await(ctx context.Context, server int) error {
	c, running := p.commands[server], p.running[server]
	if running == nil {
		return nil
	}
	ready := c.Ready
	if ready == nil {
		ready = accepts
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx, c.Addr)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-running.Done():
			return fmt.Errorf("server %d has ended before it served; its log is %s", server+1, c.Log)
		case <-ctx.Done():
			return fmt.Errorf("wait for server %d: %w: %w", server+1, context.Cause(ctx), err)
		}
	}
}

// accepts returns no error if a server accepts a connection.
func accepts(ctx context.Context, addr string) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return c.Close()
}

// start starts the process of a server.
func start(c Command) (*child.Process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env = append(append(os.Environ(), c.Env...), c.Clock.Env()...)
	if c.Log != "" {
		log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
		if err != nil {
			return nil, err
		}
		defer log.Close() // the process has its own descriptor
		cmd.Stdout, cmd.Stderr = log, log
	}
	return child.Start(cmd)
}
