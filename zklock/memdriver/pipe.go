package memdriver

import "time"

// pipe carries messages one way between two processes, in order. It models one
// direction of a TCP connection. While it is cut, it holds the messages that were
// sent, and delivers them when it is healed, as retransmission does. When it is
// broken, it drops everything, as a reset does. Closing one end is itself a message
// (see conn and learner), so behind a cut the other end does not learn of it.
type pipe struct {
	e       *Ensemble
	delay   time.Duration
	cut     bool     // silent: messages that arrive are held
	pauses  int      // if positive, messages are held too; counts pauses of this pipe alone, not partitions
	broken  bool     // reset: messages that arrive are dropped
	held    []func() // messages that arrived while cut, or behind such messages, in order
	flowing bool     // trickle will be called
	flying  int      // number of messages sent and not arrived yet
}

// clear reports whether a message sent now would arrive at once, with no message in
// front of it. Then the sender may call the receiver directly instead of sending.
func (p *pipe) clear() bool {
	return p.delay == 0 && p.flying == 0 && !p.cut && p.pauses == 0 && !p.broken && len(p.held) == 0
}

// send sends a message; deliver is called when it arrives at the far end.
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

// pause makes this pipe alone silent. Each call of pause needs one of resume.
func (p *pipe) pause() { p.pauses++ }

func (p *pipe) resume() {
	p.pauses--
	p.flow()
}

// flow delivers the held messages, if nothing holds them now. It posts the delivery instead of
// calling it, so that the effects of the first message do not overtake the messages behind that.
func (p *pipe) flow() {
	if p.cut || p.pauses > 0 || len(p.held) == 0 || p.flowing {
		return
	}
	p.flowing = true
	p.e.post(p.trickle)
}

// trickle delivers the held messages one after the other. If messages take time, each
// arrives at a different instant, as from a wire, so that the receivers' reactions
// have an order that can be repeated.
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

// breakOff drops all messages under way, and all that are sent from now on.
func (p *pipe) breakOff() {
	p.broken = true
	p.held = nil
}
