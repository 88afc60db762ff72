package fleet

import (
	"context"
	"runtime"

	"github.com/zklock/go-zklock/zklock"
)

// Suspend stops the process until another client has got a lock that the process holds, and then
// lets it go on. So the process goes on without the lock, and nothing has reported the loss to it
// yet. url is the ensemble's.
func (p *Process) Suspend(url, name string) {
	p.t.Helper()
	client, err := zklock.Open(url)
	if err != nil {
		p.t.Fatal(err)
	}
	defer client.Close()
	if err := p.freeze(); err != nil {
		p.t.Fatalf("process %d cannot be stopped: %v", p.cmd.Process.Pid, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, taken := client.Mutex(name).Acquire(ctx) // Close releases it
	if err := p.thaw(); err != nil {
		p.t.Fatalf("process %d cannot go on: %v", p.cmd.Process.Pid, err)
	}
	if taken != nil {
		p.t.Fatalf("the lock %q of a process that is stopped: %v", name, taken)
	}
}

// HoldsOn loops on the processor until a lock has ended. If Suspend stops the process during
// HoldsOn, the process goes on in this loop, in most runs before another of its goroutines has
// noticed the loss.
func (m *Member) HoldsOn(lock *zklock.Lock) {
	runtime.GOMAXPROCS(1) // for good: a change lets other goroutines run
	m.Say("holds")
	for lock.Valid() {
	}
}
