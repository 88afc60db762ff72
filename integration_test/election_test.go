package integration_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
)

// TestElections lets zklock's candidates and those of other libraries stand in one election.
// Each leads while the other waits, and tokens rise.
func TestElections(t *testing.T) {
	t.Parallel()
	hosts, root := sharedEnsemble(t).Hosts(), rootOf(t)
	curator, kazoo := curatorPeers(t, 1, hosts)[0], kazooPeers(t, 1, hosts)[0]
	curator.expect(t, "ready")
	kazoo.expect(t, "ready")
	for _, c := range []struct {
		p             *peer
		kind, dialect string
	}{{curator, "selector", "curator"}, {curator, "latch", "latch"}, {kazoo, "election", "kazoo"}} {
		t.Run(c.kind, func(t *testing.T) {
			client, err := zklock.Open("zk://" + hosts + root + "?tick_time=500ms&dialect=" + c.dialect)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			e := election.New(client, c.kind, election.WithValue("ours"))
			candidates := func(n int) {
				t.Helper()
				eventually(t, "the election has the expected number of candidates", func() bool {
					all, err := e.Candidates(within(t))
					return err == nil && len(all) == n
				})
			}
			term, err := e.Campaign(within(t))
			if err != nil {
				t.Fatal(err)
			}
			c.p.send("acquire %s %s", c.kind, client.Mutex(c.kind).Path())
			candidates(2)
			c.p.silent(t)
			if l, err := e.Leader(within(t)); err != nil || l.Value != "ours" || l.Token != term.Token() {
				t.Errorf("leader %+v, %v, want ours with the token %v", l, err, term.Token())
			}
			if err := term.Resign(within(t)); err != nil {
				t.Error(err)
			}
			c.p.expect(t, "held")

			theirs, err := e.Leader(within(t))
			if err != nil || theirs.Value != "" || theirs.Token.Compare(term.Token()) <= 0 {
				t.Errorf("leader %+v, %v, want one of the other library, and a token greater than %v", theirs, err, term.Token())
			}
			next := make(chan *election.Term, 1)
			ctx := within(t)
			go func() {
				defer close(next)
				term, err := e.Campaign(ctx)
				if err != nil {
					t.Errorf("campaign: %v", err)
					return
				}
				next <- term
			}()
			candidates(2)
			select {
			case <-next:
				t.Error("zklock's candidate leads at the same time as the other library's")
			default:
			}
			c.p.send("release")
			c.p.expect(t, "released")
			if term = <-next; term == nil {
				return
			}
			if term.Token().Compare(theirs.Token) <= 0 {
				t.Errorf("token %v after %v", term.Token(), theirs.Token)
			}
			if err := term.Resign(within(t)); err != nil {
				t.Error(err)
			}
			if _, err := e.Leader(within(t)); !errors.Is(err, election.ErrNoLeader) {
				t.Errorf("after the last term: %v, want %v", err, election.ErrNoLeader)
			}
		})
	}
}

// campaign stands for election in a peer, and returns the function that resigns.
func campaign(c *zklock.Client, name string) (func() error, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	t, err := election.New(c, name).Campaign(ctx)
	return func() error { return t.Resign(context.Background()) }, err
}

// TestElectionContests lets three processes of zklock and three of another library stand for
// election again and again, all at the same time: more than a hundred changes of the leader,
// and never two leaders.
func TestElectionContests(t *testing.T) {
	t.Parallel()
	long.Test(t, "nine processes of three libraries")
	hosts, root := sharedEnsemble(t).Hosts(), rootOf(t)
	conn := dialRaw(t, hosts, patience)
	if err := dial(t, hosts, quick()).Ping(within(t)); err != nil { // creates the root
		t.Fatal(err)
	}
	others := map[string][]*peer{"curator": curatorPeers(t, 3, hosts), "kazoo": kazooPeers(t, 3, hosts)}
	for _, library := range []string{"curator", "kazoo"} {
		for _, p := range others[library] {
			p.expect(t, "ready")
		}
	}
	const rounds = 20 // of each of the six processes
	for _, contest := range []struct{ library, kind, dialect string }{
		{"curator", "selector", "curator"}, {"curator", "latch", "latch"}, {"kazoo", "election", "kazoo"},
	} {
		t.Run(contest.kind, func(t *testing.T) {
			mine := goPeers(t, 3, "zklock", hosts, root, contest.dialect)
			for _, p := range mine {
				p.expect(t, "ready")
			}
			dir, guard := root+"/contest-"+contest.kind, root+"/guard-"+contest.kind
			if _, err := conn.Create(guard, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				mine[i].send("contend election %s %d %s", dir, rounds, guard)
				others[contest.library][i].send("contend %s %s %d %s", contest.kind, dir, rounds, guard)
			}
			for i := range 3 {
				mine[i].expect(t, "done")
				others[contest.library][i].expect(t, "done")
			}
			eventually(t, "no candidate is left behind", func() bool {
				names, _, err := conn.Children(dir)
				return err == nil && len(names) == 0 || errors.Is(err, zk.ErrNoNode)
			})
			// Each term is one create in the guard and one delete.
			_, stat, err := conn.Get(guard)
			if err != nil {
				t.Fatal(err)
			}
			if terms := stat.Cversion / 2; terms != 6*rounds {
				t.Errorf("%d terms, want %d", terms, 6*rounds)
			} else {
				t.Logf("%d terms, never two at the same time", terms)
			}
		})
	}
}
