package memdriver

import "time"

// pipe carries messages one way between two processes, in order. It models a
// TCP connection's direction: while cut it keeps what was sent and delivers it
// when it is healed, as retransmission does; when broken it drops everything,
// as a reset does. Closing one end is itself a message (see conn and learner),
// so behind a cut the other end does not learn of it.
type pipe struct {
	e       *Ensemble
	delay   time.Duration
	cut     bool     // silent: what arrives is held
	pauses  int      // the same while there are any, for this pipe alone and not by a partition
	broken  bool     // reset: what arrives is dropped
	held    []func() // arrived while cut, or behind what did, in order
	flowing bool     // trickle will be called
	flying  int      // sent and not arrived yet
}

// clear reports whether a message sent now would arrive now, with none in front
// of it: then the sender may call the receiver instead of sending.
func (p *pipe) clear() bool {
	return p.delay == 0 && p.flying == 0 && !p.cut && p.pauses == 0 && !p.broken && len(p.held) == 0
}

// send has deliver called at the far end.
func (p *pipe) send(deliver func()) {
	if p.broken {
		return
	}
	p.flying++
	arrive := func() {
		p.flying--
		switch {
		case p.broken:
		case p.cut || p.pauses > 0 || len(p.held) > 0:
			p.held = append(p.held, deliver)
		default:
			deliver()
		}
	}
	if p.delay > 0 {
		p.e.after(p.delay, arrive)
		return
	}
	p.e.post(arrive)
}

// setCut makes the pipe silent, or heals it.
func (p *pipe) setCut(cut bool) {
	p.cut = cut
	p.flow()
}

// pause makes this pipe alone silent, until resume has been called as often.
func (p *pipe) pause() { p.pauses++ }

func (p *pipe) resume() {
	p.pauses--
	p.flow()
}

// flow lets what was held arrive, if nothing holds it any more. Posted and not
// called: what it causes must not overtake what is behind it.
func (p *pipe) flow() {
	if p.cut || p.pauses > 0 || len(p.held) == 0 || p.flowing {
		return
	}
	p.flowing = true
	p.e.post(p.trickle)
}

// trickle delivers what was held, one after the other. Where messages take time,
// each arrives at an instant of its own, as from a wire: then what the receivers
// do about it has an order that repeats itself.
func (p *pipe) trickle() {
	p.flowing = false
	if p.cut || p.pauses > 0 || len(p.held) == 0 {
		return
	}
	deliver := p.held[0]
	p.held = p.held[1:]
	deliver()
	if len(p.held) == 0 {
		return
	}
	p.flowing = true
	if p.delay > 0 {
		p.e.after(1, p.trickle)
		return
	}
	p.e.post(p.trickle)
}

// breakOff drops what is under way and all that is sent from now on.
func (p *pipe) breakOff() {
	p.broken = true
	p.held = nil
}
