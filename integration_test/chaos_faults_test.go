//go:build linux

package integration_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/zklock/go-zklock/integration_test/ensemble"
	"github.com/zklock/go-zklock/integration_test/proxy"
)

// The servers of the chaos test expire a session after three seconds, and one
// that is cut from its leader notices after six: for about two seconds it goes
// on answering a client whose locks others have got.
const (
	chaosTick      = 500 * time.Millisecond
	chaosSyncLimit = 12
	chaosSession   = 3 * time.Second

	// chaosConns is how many connections a worker has: two sessions, and one
	// for each side of the control.
	chaosConns = 4
)

// wholeSync makes the leader send a server that comes back all its data. From the
// transactions that a server has missed, which is the default, some releases of
// ZooKeeper lose a few on the disk of the server (ZOOKEEPER-4785, mended in 3.8.4 and
// 3.9.2; ZOOKEEPER-4925, of 3.9.3 alone). Its next restart brings the loss to light:
// it answers its clients from data that no other server has, for ever.
const wholeSync = "forceSnapshotSync=true"

// kind is one kind of fault. strike ends when the fault is over and has been
// recovered from as far as that is part of it; it calls lifted at the moment
// from which on nothing keeps the workers from going on.
type kind struct {
	name   string
	strike func(*chaos, *stroke) error
}

// stroke is one fault of a kind.
type stroke struct {
	kind   string
	victim *victim    // whose connections or process it strikes
	rng    *rand.Rand // of the schedule

	struck, lifted int64         // monotonic
	election       time.Duration // until another server led, where one had to
}

// lift notes that the fault is over.
func (s *stroke) lift() { s.lifted = monotonic() }

// atLeast is a stretch of d to 1.3 d.
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

// killLeader measures the recovery from the kill on, not from the server's
// return: the other two are a quorum.
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

// elected waits until another server leads in place of one that has just gone.
// What workers take longer than that to recover is theirs.
func (c *chaos) elected(s *stroke, gone *ensemble.Server) error {
	began := time.Now()
	_, err := c.ensemble.AwaitLeader(gone)
	s.election = time.Since(began)
	return err
}

// stopLeader stops it until another one leads: it wakes up deposed.
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

// stopFollower stops it for longer than the sessions of its clients live without
// it.
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

// stallDisks makes a quorum wait for its logs, again and again: it goes on
// answering reads and pings.
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

// restartAll restarts one server after the other, in good order.
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

// cutFollower cuts the follower that the victim is connected to until the
// victim's session must have expired, and not so long that the follower notices.
// Mostly the victim can reach no other server meanwhile: else it takes its
// session there in time, and loses nothing.
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
	// Who gets the victim's locks has to be elsewhere.
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

// stopClient stops the process for longer than its session lives.
func stopClient(c *chaos, s *stroke) error {
	process := s.victim.process.cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	c.pause(s.atLeast(chaosSession + 2*chaosTick))
	s.lift()
	return process.Signal(syscall.SIGCONT)
}

// cutClient resets the connections a few times.
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

// silenceClient makes what the client sends vanish, or what it is sent, or both,
// for longer than its session lives.
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

// followerOf is a follower that the victim is connected to from now on.
func (c *chaos) followerOf(s *stroke) (f *ensemble.Server, free func(), err error) {
	followers := c.ensemble.Followers()
	if len(followers) == 0 {
		return nil, nil, errors.New("no server follows")
	}
	f = followers[s.rng.IntN(len(followers))]
	return f, c.confine(s.victim, f), nil
}

// confine makes the victim connect to one server, by refusing it at the others
// until free is called. A client that takes too long is struck where it is.
func (c *chaos) confine(v *victim, to *ensemble.Server) (free func()) {
	for i, p := range v.links {
		if i != to.Index() {
			p.Cut()
		}
	}
	for giveUp := time.Now().Add(chaosSession); v.links[to.Index()].Conns() < chaosConns && time.Now().Before(giveUp); {
		c.pause(20 * time.Millisecond)
	}
	c.pause(chaosTick) // the control takes its lock up again
	return func() {
		for i, p := range v.links {
			if i != to.Index() {
				p.Heal()
			}
		}
	}
}
