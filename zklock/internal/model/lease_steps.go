package model

import (
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// The steps of Leases.
const (
	timePasses uint8 = iota
	clockSlips
	leaderPings
	clientSyncs
	clientWrites
	clientReconnects
	leaderReads
	followerReads
	leaderDeposed
	sessionExpires
)

// Next implements System. A client whose lease has run out has given up its session, and
// nothing that follows matters.
func (m Leases) Next(s leaseState, emit func(Step, leaseState)) {
	if s.expired || !m.alive(&s) {
		return
	}
	if !s.deposed && s.toClient[streamLen-1] == nothing && s.pinged > 0 {
		to := s
		to.ping()
		emit(Step{What: leaderPings}, to)
		if s.pinged == m.Tick {
			return // the ping is due: nothing else happens before it at that instant
		}
	}
	m.time(s, emit)
	if s.chain > 0 && !s.silent && s.under < m.Outstanding && s.toLeader[streamLen-1] == nothing {
		for _, kind := range []int8{syncing, write} {
			to := s
			to.request(kind)
			emit(Step{What: clientSyncs + uint8(kind-syncing)}, to)
		}
	}
	if s.toLeader[0] != nothing && (s.deposed || s.toClient[streamLen-1] == nothing) {
		to := s
		m.leaderReads(&to)
		emit(Step{What: leaderReads, Arg: s.toLeader[0]}, to)
	}
	if s.toClient[0] != nothing && (s.toClient[0] != ping || s.toLeader[streamLen-1] == nothing) {
		to := s
		m.followerReads(&to)
		emit(Step{What: followerReads, Arg: s.toClient[0]}, to)
	}
	if s.elected < m.Elections {
		to := s
		to.elect(m.Timeout)
		emit(Step{What: leaderDeposed}, to)
	}
	if s.connected < m.Reconnects {
		to := s
		to.reconnect()
		emit(Step{What: clientReconnects}, to)
		if s.deposed {
			to.deposed = false
			to.pinged = 0
			emit(Step{What: clientReconnects, Arg: 1}, to)
		}
	}
	if s.left == 0 {
		to := s
		to.expired = true
		emit(Step{What: sessionExpires}, to)
	}
}

// time lets a unit of time pass, but not beyond the instant when a ping is due. A leader that
// is late to expire a session takes nothing from the client, so it may be late by any time.
func (m Leases) time(s leaseState, emit func(Step, leaseState)) {
	if s.pinged == m.Tick && !s.deposed {
		return
	}
	s.left = max(s.left-1, 0)
	if !s.deposed {
		s.pinged++
	}
	if s.slips < m.Slips {
		to := s
		to.slips++
		emit(Step{What: clockSlips}, to)
	}
	age := func(i int8) int8 { return max(i-1, -m.Timeout-m.Tick-2) }
	if s.proven != unproven {
		s.proven = age(s.proven)
	}
	for i := range s.links[:s.chain] {
		s.links[i].sent, s.links[i].answered = age(s.links[i].sent), age(s.links[i].answered)
	}
	for i := range s.sent[:s.under] {
		s.sent[i] = age(s.sent[i])
	}
	// The handshake and the latest exchange are kept. Exchanges older than the timeout prove
	// nothing about the future.
	for s.chain > 2 && s.links[1].sent < -m.Timeout {
		s.unlink(1)
	}
	emit(Step{What: timePasses}, s)
}

// unlink takes a link out of the chain.
func (s *leaseState) unlink(i int) {
	copy(s.links[i:], s.links[i+1:])
	s.chain--
	s.links[s.chain] = exchanged{}
}

// put appends a message to a stream. It does not append a ping or a report that directly follows
// another of its kind: the two are one message.
func put(stream *[streamLen]int8, message int8) {
	last := nothing
	for i, m := range stream {
		if m == nothing {
			if message != last || message > report {
				stream[i] = message
			}
			return
		}
		last = m
	}
}

// take removes the first message of a stream.
func take(stream *[streamLen]int8) (message int8) {
	message = stream[0]
	copy(stream[:], stream[1:])
	stream[streamLen-1] = nothing
	return message
}

func (s *leaseState) ping() {
	s.pinged = 0
	put(&s.toClient, ping)
}

// request sends a request, which the follower forwards at once.
func (s *leaseState) request(kind int8) {
	s.sent[s.under] = 0
	s.under++
	s.heard = !s.deposed
	put(&s.toLeader, kind)
}

// leaderReads reads the first message of the follower's stream. A deposed leader answers what needs
// no quorum. It answers no write, and nothing that follows a write.
func (m Leases) leaderReads(s *leaseState) {
	switch kind := take(&s.toLeader); {
	case kind == report:
		s.left = m.Timeout
	case !s.deposed:
		if kind == handshake {
			s.left = m.Timeout
		}
		put(&s.toClient, kind)
	case kind == write:
		s.silence()
	default:
		put(&s.toClient, kind)
	}
}

// followerReads reads the first message of the leader's stream. A reply goes on to the client.
func (m Leases) followerReads(s *leaseState) {
	switch kind := take(&s.toClient); kind {
	case ping:
		if s.heard {
			s.heard = false
			put(&s.toLeader, report)
		}
	default:
		sent := s.sent[0]
		copy(s.sent[:], s.sent[1:])
		s.under--
		s.sent[s.under] = 0
		m.answered(s, kind, sent)
	}
}

// answered is what the client does with a reply.
func (m Leases) answered(s *leaseState, kind, sent int8) {
	if kind == handshake {
		s.links[0], s.chain = exchanged{sent: sent}, 1
		if m.Without == ReconnectsProveNo {
			s.proven = max(s.proven, sent)
		}
		return
	}
	e := exchanged{sent: sent}
	if m.Without == SentNotAnswered {
		e.sent = 0
	}
	// A clock is read before a request is written, and after a reply is read. So the reply to a
	// request that was under way at an instant is read later than that instant.
	e.later = s.under > 0 && s.sent[s.under-1] == 0
	l := m.lease(s)
	newest := l.LastSent()
	if kind == write {
		m.claim(s, l, sent)
	}
	l.Acknowledged(m.instant(e.sent), m.answeredAt(e), kind == write || m.Without == CommitsOnly)
	m.note(s, l)
	if l.LastSent().Equal(newest) {
		return // the exchange did not become a link
	}
	if s.chain == maxLinks {
		panic("model: maxLinks is too small for that timeout: with fewer links, leases are shorter than the library's")
	}
	s.links[s.chain] = e
	s.chain++
}

// claim extends a lease by one of the rules that look sound.
func (m Leases) claim(s *leaseState, l *lease.Lease, sent int8) {
	touch := int8(unproven)
	switch m.Without {
	case EarlierExchanges:
		touch = sent
	case ExchangeBefore:
		for _, e := range s.links[:s.chain] {
			if !m.answeredAt(e).After(m.instant(sent)) {
				touch = e.sent
			}
		}
	}
	if touch > s.proven {
		l.Until = m.instant(touch).Add(m.length(l))
	}
}

// silence makes the connection one that never answers again.
func (s *leaseState) silence() {
	s.silent = true
	s.sent, s.under = [maxUnder]int8{}, 0
	s.toLeader, s.toClient = [streamLen]int8{}, [streamLen]int8{}
	s.heard = false
}

// elect has another leader elected. The client's follower stays with the old one.
func (s *leaseState) elect(timeout int8) {
	s.elected++
	s.left = timeout
	s.deposed, s.heard, s.pinged = true, false, 0
	for _, stream := range []*[streamLen]int8{&s.toLeader, &s.toClient} {
		requests := [streamLen]int8{}
		for _, message := range stream {
			if message > report {
				put(&requests, message)
			}
		}
		*stream = requests
	}
}

// reconnect has the client resume its session on another connection.
func (s *leaseState) reconnect() {
	s.connected++
	s.silence()
	s.silent = false
	s.links, s.chain = [maxLinks]exchanged{}, 0
	s.request(handshake)
}

// Describe implements System.
func (m Leases) Describe(_ leaseState, step Step, to leaseState) string {
	name := [...]string{"nothing", "ping", "report", "sync", "write", "handshake"}[step.Arg]
	reply := ""
	switch step.What {
	case timePasses:
		reply = "time passes"
	case clockSlips:
		reply = "time passes, and the client's clock stands still"
	case leaderPings:
		reply = "the leader sends a ping"
	case clientSyncs:
		reply = "the client sends a sync"
	case clientWrites:
		reply = "the client sends a write"
	case clientReconnects:
		reply = [...]string{"the client reconnects", "the client reconnects to a server of the new leader"}[step.Arg]
	case leaderReads:
		reply = "the leader reads the " + name
	case followerReads:
		reply = "the follower reads the " + name
		if step.Arg > report {
			reply = "the client reads the reply to the " + name
		}
	case leaderDeposed:
		reply = "a new leader is elected; the client's server stays with the old one"
	case sessionExpires:
		reply = "the leader expires the session, and the next contender is granted the lock"
	}
	var more strings.Builder
	if left := m.lease(&to).Until.Sub(epoch); left > 0 {
		fmt.Fprintf(&more, "lease left %.1f", float64(left)/float64(m.Unit))
	} else {
		more.WriteString("lease over")
	}
	return fmt.Sprintf("%-68s [session left %d, %s]", reply, to.left, &more)
}
