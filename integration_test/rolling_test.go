//go:build linux

package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// upgradeEnv is the environment variable that names an unpacked release of ZooKeeper.
// TestRollingUpgrade upgrades servers of the usual release to it.
const upgradeEnv = "ZKLOCK_TEST_UPGRADE"

// rollingConfig is the ensemble of the tests of maintenance.
var rollingConfig = ensemble.Config{Servers: 3, TickTime: chaosTick, SyncLimit: chaosSyncLimit, Extra: []string{wholeSync}}

// TestRollingRestart restarts each of three servers, one after the other, twice, while
// processes use locks of all kinds. The rules are those of the chaos test: no two holders
// overlap, and tokens rise. A lock is lost only because its lease ran out, or because its
// session expired.
func TestRollingRestart(t *testing.T) {
	long.Parallel(t)
	long.Test(t, "three servers restart one after the other")
	ensemble.Require(t)
	c := &chaos{t: t, root: rootOf(t), mild: true}
	c.only(c.restartAll, "rolling restart", "second rolling restart")
	c.run(chaosSeed(t), 0, rollingConfig)
}

// TestRollingUpgrade upgrades three servers to another release, one after the other, under the
// same load.
func TestRollingUpgrade(t *testing.T) {
	long.Parallel(t)
	ensemble.Require(t)
	home := os.Getenv(upgradeEnv)
	if home == "" {
		t.Skipf("no release to upgrade to: set %s to the folder of an unpacked one", upgradeEnv)
	}
	to, err := ensemble.At(home)
	if err != nil {
		t.Fatal(err)
	}
	c := &chaos{t: t, root: rootOf(t), mild: true}
	c.only(func(ctx context.Context) error {
		before := c.versions()
		for _, server := range c.ensemble.Servers() {
			server.Upgrade(to)
		}
		if err := c.restartAll(ctx); err != nil {
			return err
		}
		after := c.versions()
		t.Logf("upgraded %s to %s", strings.Join(before, ", "), strings.Join(after, ", "))
		for i := range after {
			if after[i] == before[i] {
				return fmt.Errorf("server %d ran %s before the upgrade to %s, and after it", i, before[i], home)
			}
		}
		return nil
	}, "rolling upgrade")
	c.run(chaosSeed(t), 0, rollingConfig)
}

// only makes a run with faults of its own, which one function makes.
func (c *chaos) only(strike func(context.Context) error, kinds ...fault.Kind) {
	c.kinds, c.own = kinds, make(map[fault.Kind]func(context.Context) error)
	for _, k := range kinds {
		c.own[k] = strike
	}
}

// restartAll restarts each server, one after the other.
func (c *chaos) restartAll(ctx context.Context) error {
	for _, i := range rand.Perm(len(c.ensemble.Servers())) {
		if err := c.servers.Restart(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// versions returns the release that each of the servers runs.
func (c *chaos) versions() (all []string) {
	for _, s := range c.ensemble.Servers() {
		st, err := s.Status()
		c.must(err)
		all = append(all, st.Version)
	}
	return all
}

// TestReconfiguration replaces a server by another one under load: a fourth server is added,
// and one that the clients use is removed and stopped. Later it replaces the fourth one again.
func TestReconfiguration(t *testing.T) {
	t.Parallel()
	long.Test(t, "servers join and leave under load")
	ensemble.Require(t)
	c := &chaos{t: t, root: rootOf(t), mild: true}
	c.only(c.replaceServer(), "a server replaced", "a server replaced again")
	config := rollingConfig
	config.Reconfigurable, config.DirectQuorum = true, true
	c.run(chaosSeed(t), 0, config)
}

// replaceServer returns a function that replaces a server of the ensemble when it is called, and undoes that when it is called again.
func (c *chaos) replaceServer() func(context.Context) error {
	var old, added *ensemble.Server
	return func(context.Context) (err error) {
		if added != nil {
			if err := old.Rejoin(); err != nil {
				return err
			}
			return c.reconfigure(old, added)
		}
		old = c.ensemble.Server(rand.IntN(len(c.ensemble.Servers())))
		if added, err = c.ensemble.Add(); err != nil {
			return err
		}
		return c.reconfigure(added, old)
	}
}

// reconfigure adds a server that runs, and then removes and stops another. In the end the
// ensemble has the one as a member, and not the other.
func (c *chaos) reconfigure(join, leave *ensemble.Server) error {
	ask := func(what string, joining, leaving []string) error {
		var failed error
		err := c.until(what, func() bool {
			// The operator's session may be on the server that leaves, or lose its server
			// to an election.
			_, failed = c.raw.IncrementalReconfig(joining, leaving, -1)
			return failed == nil
		})
		if err != nil {
			return fmt.Errorf("%w: %w", err, failed)
		}
		return nil
	}
	if err := ask(fmt.Sprintf("%v has joined", join), []string{join.Member()}, nil); err != nil {
		return err
	}
	if err := join.AwaitRole(ensemble.Follower, ensemble.Leader); err != nil {
		return err
	}
	<-time.After(time.Second) // the ensemble works with four servers
	if err := ask(fmt.Sprintf("%v has left", leave), nil, []string{leave.ID()}); err != nil {
		return err
	}
	var members string
	if err := c.until(fmt.Sprintf("%v is a member in the place of %v", join, leave), func() bool {
		data, _, err := c.raw.Get("/zookeeper/config")
		members = string(data)
		return err == nil && strings.Contains(members, "server."+join.ID()+"=") && !strings.Contains(members, "server."+leave.ID()+"=")
	}); err != nil {
		return fmt.Errorf("%w: the members are\n%s", err, members)
	}
	return leave.Stop()
}
