package model

import (
	"errors"

	"github.com/zklock/go-zklock/zklock/internal/place"
)

// WarmNames is the model of a warm name: one client takes, holds and releases a name again and
// again, with creates that no set follows, and concludes from the replies that it is alone in
// the queue. Other clients come and go, with and without sets; the name's znode is removed
// when it is empty, and made by the next client that wants it, with suffixes that begin at 0.
// The client's server may lag behind. Its deletes may come after its next create.
type WarmNames struct {
	Writes     int8 // how many transactions there may be, at most 15
	Others     int8 // how many other contenders there may be at a time
	Reconnects int8 // how often the client may reconnect

	Without WarmGuard // the guard that is taken out
}

// WarmGuard is a part of the proof that can be taken out of the model.
type WarmGuard uint8

// The guards of a warm name.
const (
	NoWarmGuard      WarmGuard = iota // none is taken out
	SuffixFollows                     // the new suffix follows that of the contender before
	ParentWatched                     // a watch shows that the znode is the same
	CheckedLast                       // the watch is checked when the reply was read, not before the create is sent
	SameParentArmed                   // the watch was armed on the znode of the contender before
	WatchOfThisConn                   // the watch was armed on the connection of the reply
	GoneBefore                        // the contender before was deleted before the new one was created
	AloneBefore                       // the contender before was alone when it was created
	EventBeforeReply                  // the server sends an event before the reply to a later transaction
)

// The phases of the client of WarmNames.
const (
	without   int8 = iota // it has no contender
	created               // a create without a set was committed, and its reply is under way
	evaluated             // it has read the reply
	held                  // it holds the name
)

const maxWrites = 16

// wnode is a contender of the client.
type wnode struct {
	suffix, zxid, parent int8
	alone                bool // it was alone in the queue when it was created: the truth
	counts               bool // the client counts it as alone
}

// warmState is a state of WarmNames. Transactions are numbered from 1 on.
type warmState struct {
	zxid    int8            // of the newest transaction
	parents [maxWrites]int8 // the transaction that made the znode, as of each transaction; 0: there is none
	fires   uint16          // the transactions that fire a watch on the znode
	next    int8            // the suffix that comes next
	others  int8            // how many other contenders are in the queue

	at         int8 // what the client's server has applied
	reconnects int8
	phase      int8
	own        wnode // from created on

	before   wnode // what the contender before proves
	proves   bool  // there is such a contender
	lies     bool  // its node is still in the queue
	deleting bool  // its delete has no answer yet
	goneBy   int8  // the transaction that has deleted it, as far as the client knows; 0: it does not know one

	watch int8 // what the server had applied when the client's watch was armed; unarmed, or lost
	held0 bool // the watch held before the create was sent
}

// There is no watch, or its connection is gone.
const (
	unarmed = -1
	lost    = -2
)

// Initial implements System: another client has made the znode.
func (WarmNames) Initial() []warmState {
	s := warmState{watch: unarmed}
	s.commit()
	s.parents[s.zxid] = s.zxid
	s.at = s.zxid
	return []warmState{s}
}

// Canonical implements System: the other contenders are only counted. What neither the
// client's server nor its watch can show any more does not matter.
func (WarmNames) Canonical(s warmState) warmState {
	for i := range s.at {
		s.parents[i] = 0
	}
	shown := s.at
	if s.watch >= 0 {
		shown = s.watch
	}
	s.fires &^= 1<<(shown+1) - 1
	return s
}

// commit adds a transaction.
func (s *warmState) commit() {
	s.zxid++
	s.parents[s.zxid] = s.parents[s.zxid-1]
}

// parent returns the transaction that made the znode; 0 if there is none.
func (s *warmState) parent() int8 { return s.parents[s.zxid] }

// make makes the znode if it does not exist.
func (s *warmState) make() {
	if s.parent() == 0 {
		s.commit()
		s.parents[s.zxid], s.next = s.zxid, 0
	}
}

// watchHolds reports whether the client's watch has not fired, as far as the client has heard.
func (m WarmNames) watchHolds(s *warmState) bool {
	if m.Without == ParentWatched {
		return true
	}
	if s.watch == unarmed || s.watch == lost {
		return false
	}
	heard := uint16(1)<<(s.at+1) - 1
	if m.Without == EventBeforeReply {
		heard = 0
	}
	return s.fires&heard&^(1<<(s.watch+1)-1) == 0
}

// proof is the library's proof about the client's new contender.
func (m WarmNames) proof(s *warmState) bool {
	p := place.Proof{
		Before:  int64(s.before.suffix),
		Suffix:  int64(s.own.suffix),
		GoneBy:  int64(s.goneBy),
		Zxid:    int64(s.own.zxid),
		Watched: m.watchHolds(s),
	}
	switch m.Without {
	case SuffixFollows:
		p.Suffix = p.Before + 1
	case CheckedLast:
		p.Watched = s.held0
	case GoneBefore:
		p.GoneBy = p.Zxid
	}
	return s.proves && p.Alone()
}

// Check implements System.
func (WarmNames) Check(s warmState) error {
	if s.phase == held && s.own.counts && !s.own.alone {
		return errors.New("a contender counts as alone in the queue, and was not")
	}
	return nil
}

// Settled implements System: callers and other clients make all transactions.
func (WarmNames) Settled(warmState) error { return nil }
