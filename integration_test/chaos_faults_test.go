//go:build linux

package integration_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
)

// The servers of the chaos test expire a session after three seconds. A server that is cut
// off from its leader notices after six. So for about two seconds it goes on answering a
// client whose locks other clients have already got.
const (
	chaosTick      = 500 * time.Millisecond
	chaosSyncLimit = 12
	chaosSession   = 3 * time.Second

	// chaosConns is the number of a worker's connections: two for its sessions, and one
	// for each side of the control.
	chaosConns = 4
)

// wholeSync makes the leader send all its data to a server that returns. By default the leader
// sends only the transactions that the server has missed. Some releases of ZooKeeper then fail
// to write a few of these to the server's disk (ZOOKEEPER-4785, fixed in 3.8.4 and 3.9.2;
// ZOOKEEPER-4925, in 3.9.3 only). After its next restart such a server answers its clients for
// ever from data that no other server has.
const wholeSync = "forceSnapshotSync=true"

// kind is one kind of fault. strike makes the fault, and returns when it is over. Some kinds also
// wait until the workers have recovered. strike calls stroke.lift as soon as nothing prevents the
// workers from continuing.
type kind struct {
	name   string
	strike func(*chaos, *stroke) error
}

// stroke is one fault of a kind.
type stroke struct {
	kind   string
	victim *victim    // the worker whose connections or process the fault strikes
	rng    *rand.Rand // the random numbers of the schedule

	struck, lifted int64         // monotonic
	election       time.Duration // the time until another server led, if the fault was about the leader
}

// lift records that the fault is over.
func (s *stroke) lift() { s.lifted = monotonic() }

// atLeast returns a random time from d to 1.3 d.
func (s *stroke) atLeast(d time.Duration) time.Duration {
	return d + time.Duration(s.rng.Int64N(int64(d)*3/10))
}

// kinds are all kinds of fault, in the order of the table.
var kinds = []kind{
	{"leader killed (SIGKILL)", killLeader},
	{"leader stopped (SIGSTOP)", stopLeader},
	{"follower stopped (SIGSTOP)", stopFollower},
	{"rolling restart", restartAll},
	{"disks of two servers stall", stallDisks},
	{"follower cut from its leader", cutFollower},
	{"client process stopped (SIGSTOP)", stopClient},
	{"client's connections cut", cutClient},
	{"client's connections half-open", silenceClient},
	{"client's link slow", slowClient},
}

// killLeader kills the leader. The recovery counts from the kill, not from the server's
// restart, because the other two servers are a quorum.
func killLeader(c *chaos, s *stroke) error {
	leader, err := c.ensemble.Leader()
	if err != nil {
		return err
	}
	c.confine(s.victim, leader)()
	leader.Kill()
	s.lift()
	if err := c.elected(s, leader); err != nil {
		return err
	}
	if err := c.recovered(s); err != nil {
		return err
	}
	if err := leader.Start(); err != nil {
		return err
	}
	return leader.AwaitServing()
}

// elected waits until another server leads instead of gone, and records how long that took.
// If the workers need longer to recover, the rest is their own time.
func (c *chaos) elected(s *stroke, gone *ensemble.Server) error {
	began := time.Now()
	_, err := c.ensemble.AwaitLeader(gone)
	s.election = time.Since(began)
	return err
}

// stopLeader stops the leader until another server leads, so that it wakes up deposed.
func stopLeader(c *chaos, s *stroke) error {
	leader, err := c.ensemble.Leader()
	if err != nil {
		return err
	}
	c.confine(s.victim, leader)()
	if err := leader.Freeze(); err != nil {
		return err
	}
	err = c.elected(s, leader)
	c.pause(s.atLeast(500 * time.Millisecond))
	if err := leader.Thaw(); err != nil {
		return err
	}
	s.lift()
	return err
}

// stopFollower stops a follower for so long that sessions of its clients expire.
func stopFollower(c *chaos, s *stroke) error {
	follower, free, err := c.followerOf(s)
	if err != nil {
		return err
	}
	free()
	if err := follower.Freeze(); err != nil {
		return err
	}
	c.pause(s.atLeast(chaosSession + chaosTick))
	s.lift()
	return follower.Thaw()
}

// stallDisks makes two servers, a quorum, wait for their transaction logs, again and again.
// They go on answering reads and pings.
func stallDisks(c *chaos, s *stroke) error {
	leader, err := c.ensemble.Leader()
	if err != nil {
		return err
	}
	follower, free, err := c.followerOf(s)
	if err != nil {
		return err
	}
	free()
	for end := time.Now().Add(s.atLeast(chaosSession)); time.Now().Before(end); c.pause(100 * time.Millisecond) {
		var both sync.WaitGroup
		errs := make([]error, 2)
		length := time.Duration(200+s.rng.IntN(1000)) * time.Millisecond
		for i, server := range []*ensemble.Server{leader, follower} {
			both.Go(func() { errs[i] = stallLog(server.PID(), length) })
		}
		both.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	s.lift()
	return nil
}

// restartAll stops each server with SIGTERM and starts it again, one after the other.
func restartAll(c *chaos, s *stroke) error {
	for _, i := range s.rng.Perm(len(c.ensemble.Servers())) {
		server := c.ensemble.Server(i)
		if err := server.Stop(); err != nil {
			return err
		}
		s.lift()
		if err := server.Start(); err != nil {
			return err
		}
		if err := server.AwaitServing(); err != nil {
			return err
		}
	}
	return nil
}

// cutFollower cuts the follower that the victim is connected to off from the leader. The cut
// is so long that the victim's session expires, and not so long that the follower notices.
// In two of three cases the victim can reach no other server. In the third it moves its session
// to another server in time, and loses nothing.
func cutFollower(c *chaos, s *stroke) error {
	follower, free, err := c.followerOf(s)
	if err != nil {
		return err
	}
	defer free()
	if s.rng.IntN(3) == 0 {
		free()
	}
	leader, err := c.ensemble.Leader()
	if err != nil {
		return err
	}
	// The victim loses its locks to its neighbour. The neighbour must be on another server, so it
	// goes to the leader.
	c.confine(c.neighbour(s.victim), leader)()
	if err := c.ensemble.CutFromLeader(follower); err != nil {
		return err
	}
	c.pause(chaosSession + 4*chaosTick)
	c.ensemble.Heal()
	free()
	s.lift()
	return follower.AwaitServing()
}

// stopClient stops the victim's process for so long that its session expires, and that the
// victim's control and its neighbour's overlap, however late the servers and the neighbour are.
func stopClient(c *chaos, s *stroke) error {
	control, err := c.trustedBy(s.victim)
	if err != nil {
		return err
	}
	process := s.victim.process.cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	c.pause(s.atLeast(chaosSession + 2*chaosTick))
	err = c.coveted(s.victim, control)
	s.lift()
	return errors.Join(err, process.Signal(syscall.SIGCONT))
}

// trustedBy waits until the victim's control holds its lock and believes so. It returns the
// control's session.
func (c *chaos) trustedBy(v *victim) (control int64, err error) {
	err = c.until("the control holds its lock", func() bool {
		v.mu.Lock()
		control = v.newest.Trusts
		v.mu.Unlock()
		owner, err := c.controlOwner(v)
		return err == nil && control != 0 && owner == control
	})
	return control, err
}

// coveted waits until the neighbour has acquired and released the lock of the victim's control. It
// has recorded then that it held the lock.
func (c *chaos) coveted(v *victim, control int64) error {
	acquired := false
	return c.until("the neighbour has held the control's lock", func() bool {
		owner, err := c.controlOwner(v)
		if err != nil {
			return false
		}
		acquired = acquired || owner != 0 && owner != control
		return acquired && owner == 0
	})
}

// controlOwner returns the session that holds the lock of the victim's control, or 0.
func (c *chaos) controlOwner(v *victim) (session int64, err error) {
	_, stat, err := c.raw.Get(controlPath(v.index))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return stat.EphemeralOwner, nil
}

// cutClient resets the victim's connections a few times.
func cutClient(c *chaos, s *stroke) error {
	for range 1 + s.rng.IntN(5) {
		for _, p := range s.victim.links {
			p.KillConns()
		}
		s.lift()
		c.pause(time.Duration(s.rng.IntN(300)) * time.Millisecond)
	}
	return nil
}

// silenceClient drops the bytes from the client, those to it, or both, until its session
// expires.
func silenceClient(c *chaos, s *stroke) error {
	way := proxy.Direction(1 + s.rng.IntN(3))
	for _, p := range s.victim.links {
		p.Blackhole(way)
	}
	c.pause(s.atLeast(chaosSession + 2*chaosTick))
	for _, p := range s.victim.links {
		p.Heal()
	}
	s.lift()
	return nil
}

// slowClient makes each round trip take up to a fifth of the session timeout.
func slowClient(c *chaos, s *stroke) error {
	for _, p := range s.victim.links {
		p.Delay(proxy.Up, time.Duration(50+s.rng.IntN(200))*time.Millisecond)
		p.Delay(proxy.Down, time.Duration(50+s.rng.IntN(200))*time.Millisecond)
	}
	c.pause(s.atLeast(chaosSession))
	for _, p := range s.victim.links {
		p.Heal()
	}
	s.lift()
	return nil
}

// followerOf chooses a follower and makes the victim connect to it until free is called.
func (c *chaos) followerOf(s *stroke) (f *ensemble.Server, free func(), err error) {
	followers := c.ensemble.Followers()
	if len(followers) == 0 {
		return nil, nil, errors.New("the ensemble has no follower")
	}
	f = followers[s.rng.IntN(len(followers))]
	return f, c.confine(s.victim, f), nil
}

// confine makes the victim connect to one server: the proxies to the others refuse it until
// free is called. If the victim does not connect in time, the fault strikes it where it is.
func (c *chaos) confine(v *victim, to *ensemble.Server) (free func()) {
	for i, p := range v.links {
		if i != to.Index() {
			p.Cut()
		}
	}
	for giveUp := time.Now().Add(chaosSession); v.links[to.Index()].Conns() < chaosConns && time.Now().Before(giveUp); {
		c.pause(20 * time.Millisecond)
	}
	c.pause(chaosTick) // time for the control to acquire its lock again
	return func() {
		for i, p := range v.links {
			if i != to.Index() {
				p.Heal()
			}
		}
	}
}
