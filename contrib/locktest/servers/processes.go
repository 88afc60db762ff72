package servers

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

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
}

// Processes is an ensemble of processes. It implements [Ensemble].
type Processes struct {
	commands []Command
	running  []*child.Process // nil: the server was killed
}

// Run starts the servers. It does not wait until they serve: see Await.
func Run(commands []Command) (*Processes, error) {
	p := &Processes{commands: commands, running: make([]*child.Process, len(commands))}
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

// Kill ends a server by SIGKILL and waits for its end. The server may have ended already.
func (p *Processes) Kill(server int) error {
	if r := p.running[server]; r != nil {
		r.Kill()
		p.running[server] = nil
	}
	return nil
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

// Close ends all servers.
func (p *Processes) Close() error {
	for i := range p.running {
		_ = p.Kill(i) // never fails
	}
	return nil
}

// Await calls ready for each server until it returns no error. It returns an error if a server ends before
// that, or when ctx ends.
func (p *Processes) Await(ctx context.Context, ready func(ctx context.Context, addr string) error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for i, c := range p.commands {
		for {
			err := ready(ctx, c.Addr)
			if err == nil {
				break
			}
			select {
			case <-tick.C:
			case <-p.running[i].Done():
				return fmt.Errorf("server %d has ended before it served; its log is %s", i+1, c.Log)
			case <-ctx.Done():
				return fmt.Errorf("wait for server %d: %w: %w", i+1, context.Cause(ctx), err)
			}
		}
	}
	return nil
}

// start starts the process of a server.
func start(c Command) (*child.Process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env = append(os.Environ(), c.Env...)
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
