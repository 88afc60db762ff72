// Command leader runs three replicas of a service; one of them leads. It kills the leader
// twice, and follows the election from outside:
//
//	go run ./examples/leader
//	go run ./examples/leader -url zk://127.0.0.1:2181/leader
//
// With zk:// each replica is a process, which gets SIGKILL. With mem:// a replica is a client
// on an ensemble in memory, and its session falls silent, like that of a killed process. The
// next replica leads when that session has expired.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	_ "github.com/zklock/go-zklock/zklock/zkdriver" // zk:// and zks://
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if name := os.Getenv(nameEnv); name != "" {
		err = replicaProcess(ctx, name)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "leader:", err)
		os.Exit(1)
	}
}

const (
	replicas = 3
	kills    = 2
)

// errNoReplica means that the leader is not one of the replicas that live.
var errNoReplica = errors.New("the leader is not one of the replicas that live")

// run starts the replicas, and kills the leader again and again. It fails if a replica that was
// killed leads, or if a token does not rise.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("leader", flag.ContinueOnError)
	url := flags.String("url", "mem://?session_timeout=10s", "the ensemble: zk://host:port/root, or mem:// for one in memory; the next leader comes after its session_timeout")
	if err := flags.Parse(args); err != nil {
		return err
	}
	f := newFleet(*url)
	defer f.close()
	client, err := f.open()
	if err != nil {
		return err
	}
	defer client.Close()
	killers := make(map[string]func() error)
	for i := range replicas {
		name := fmt.Sprint("replica-", i+1)
		kill, end, err := f.start(ctx, name)
		if err != nil {
			return err
		}
		defer end()
		killers[name] = kill
	}
	return watch(ctx, client, killers, out)
}

// watch follows the election, and kills leaders. The election is over when the last one leads
// that is not to be killed.
func watch(ctx context.Context, client *zklock.Client, killers map[string]func() error, out io.Writer) error {
	var last zklock.Token
	killed := time.Time{}
	for l, err := range election.New(client, "service").Observe(ctx) {
		switch {
		case errors.Is(err, election.ErrNoLeader), errors.Is(err, zklock.ErrUnavailable):
			continue // a replica leads soon
		case err != nil:
			return err
		case l.Token == last:
			continue // the same term, after an outage
		case l.Token.Compare(last) < 0:
			return fmt.Errorf("token %v after %v", l.Token, last)
		}
		last = l.Token
		kill, ok := killers[l.Value]
		if !ok {
			return fmt.Errorf("%w: %q", errNoReplica, l.Value)
		}
		if killed.IsZero() {
			fmt.Fprintf(out, "%s leads, token %v\n", l.Value, l.Token)
		} else {
			fmt.Fprintf(out, "%s leads, token %v, %.1fs after the kill\n", l.Value, l.Token, time.Since(killed).Seconds())
		}
		if len(killers) == replicas-kills {
			return nil
		}
		if err := kill(); err != nil {
			return err
		}
		killed = time.Now()
		delete(killers, l.Value)
		fmt.Fprintf(out, "%s is killed\n", l.Value)
	}
	return context.Cause(ctx)
}

// lead is the work of a leader. It must return when ctx ends, which is before another replica
// can lead.
func lead(ctx context.Context, t *election.Term) error {
	// Pass t.Token() to what the leader writes to: it can refuse late writes.
	<-ctx.Done()
	return nil
}

// candidate stands for election until ctx ends.
func candidate(ctx context.Context, client *zklock.Client, name string) error {
	return election.New(client, "service", election.WithValue(name)).Run(ctx, lead)
}
