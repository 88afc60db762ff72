package zklock

import "github.com/zklock/go-zklock/zklock/internal/place"

// shareWhenDueLocked turns a writer's place that a reader has got into a reader's place. If
// other contenders are in ZooKeeper's queue, it does so at once. If the client watches for
// other contenders, Recalled does so when one arrives. Otherwise it happens when
// handover_time has passed, after which the place is not handed over. Until then the place
// can go back to writers of this client without a request. A reader of another process that
// queues meanwhile waits no longer than it would for those writers.
func (t *turnstile) shareWhenDueLocked(p *place.Place) {
	switch s := p.Standing(); {
	case s.Others:
		p.BecomeShared(nil)
	case !s.IsOpen():
		p.ShareAt(p.Granted.Add(t.turnstiles.cfg.handoverTime), t.shareForGood)
	}
}

// shareForGood makes a place a reader's at the time that shareWhenDueLocked has set, if
// readers hold it then. They are the last holders of the place.
func (t *turnstile) shareForGood(p *place.Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !p.Standing().IsOpen() {
		t.shareForGoodLocked(p)
	}
}

func (t *turnstile) shareForGoodLocked(p *place.Place) (became bool) {
	h, _ := p.Holder().(*hold)
	if h == nil || !h.shared() || h.isOver() {
		return false
	}
	became = p.BecomeShared(nil)
	t.serveLocked(nil) // a writer in the queue cannot get this node any more, and needs another place
	return became
}
