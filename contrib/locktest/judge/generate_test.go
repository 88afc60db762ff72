package judge_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// moment is an event of a generated history. Times are fractions, so that a mutation can put one
// between others.
type moment struct {
	at float64
	history.Event
}

// The names of the generated locks that several holds share, and the permits of one of them.
const (
	readers = "readers"
	permits = "permits"
	most    = 2
)

// generated is a history of one hold after the other, for mutations.
type generated struct {
	rng     *rand.Rand
	moments []moment
	ids     []int // of the holds, in their order
	tokens  bool
}

// generate makes a history in which a mutex of each name does what it should. Some holds are lost, some
// end before a check, some never end.
func generate(rng *rand.Rand) *generated {
	g := &generated{rng: rng, tokens: rng.IntN(4) > 0}
	id, token := 0, int64(10)
	for _, name := range []string{"a", "b"}[:1+rng.IntN(2)] {
		now := 1 + rng.Float64()
		step := func() float64 { now += 0.1 + rng.Float64(); return now }
		for range 1 + rng.IntN(8) {
			id++
			token += 1 + rng.Int64N(3)
			add := func(at float64, kind history.Kind) {
				e := history.Event{Kind: kind, ID: id, Name: name, Worker: 1 + id%3}
				if kind == history.Granted && g.tokens {
					e.Token = history.Token(strconv.FormatInt(token, 10))
				}
				g.moments = append(g.moments, moment{at, e})
			}
			g.ids = append(g.ids, id)
			granted := step()
			add(granted-rng.Float64()*5, history.Acquire)
			add(granted, history.Granted)
			add(granted+0.01, history.Read)
			checks := rng.IntN(3)
			for range checks {
				sent := step()
				add(sent, history.Check)
				add(sent+0.02+rng.Float64()/20, history.Held)
			}
			switch {
			case rng.IntN(5) == 0:
				add(step()+rng.Float64()*9, history.Lost) // late, since the process was stopped
			case rng.IntN(9) == 0: // never heard of again
			default:
				if checks > 0 || rng.IntN(2) == 0 {
					add(step(), history.Write)
				}
				released := step()
				add(released, history.Release)
				add(released+0.01+rng.Float64()*3, history.Released)
			}
		}
	}
	for _, name := range []string{readers, permits} {
		for range rng.IntN(4) {
			id, token = g.together(name, id, token)
		}
	}
	return g
}

// together adds a group of holds that have a lock together, or one that has it alone, after all events so far. It takes and returns the
// newest id and token.
func (g *generated) together(name string, id int, token int64) (int, int64) {
	now := 0.0
	for _, m := range g.moments {
		now = max(now, m.at+10)
	}
	n, proto := most, history.Event{Name: name, Permits: most}
	if name == readers {
		if n, proto = 1+g.rng.IntN(3), (history.Event{Name: name, Shared: true}); g.rng.IntN(3) == 0 {
			n, proto.Shared = 1, false
		}
	}
	add := func(id int, kind history.Kind) float64 {
		now += 0.1 + g.rng.Float64()
		e := proto
		if e.Permits > 0 {
			e.Permits += id % 2 // so many may hold together as the least of them asks for
		}
		e.Kind, e.ID, e.Worker = kind, id, 1+id%3
		if kind == history.Granted && g.tokens {
			e.Token = history.Token(strconv.FormatInt(token, 10))
		}
		g.moments = append(g.moments, moment{now, e})
		return now
	}
	for range n {
		id++
		token += 1 + g.rng.Int64N(3)
		g.ids = append(g.ids, id)
		add(id, history.Acquire)
		g.moments[len(g.moments)-1].at -= g.rng.Float64() * 5
		add(id, history.Granted)
		if name == readers {
			add(id, history.Read)
		}
	}
	for _, id := range g.ids[len(g.ids)-n:] {
		for range g.rng.IntN(3) {
			add(id, history.Check)
			add(id, history.Held)
		}
		switch {
		case proto.Shared:
			add(id, history.Reread)
		case name == readers:
			add(id, history.Write)
		}
		if g.rng.IntN(5) > 0 {
			add(id, history.Release)
			add(id, history.Released)
		}
	}
	return id, token
}

// events are the history with what the registers have answered.
func (g *generated) events() []history.Event {
	slices.SortStableFunc(g.moments, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	type register struct {
		last, fenced  int
		newest, alone history.Token
	}
	registers, tokens, shared := make(map[string]*register), make(map[int]history.Token), make(map[int]bool)
	for _, m := range g.moments {
		registers[m.Name] = new(register)
		if m.Kind == history.Granted {
			tokens[m.ID], shared[m.ID] = m.Token, m.Shared
		}
	}
	var events []history.Event
	for i, m := range g.moments {
		e, r := m.Event, registers[m.Name]
		e.At = int64(i + 1)
		switch e.Kind {
		case history.Read, history.Reread, history.Write:
			e.Token = tokens[e.ID]
			if shared[e.ID] {
				e.Refused = e.Token.Compare(r.alone) < 0
			} else {
				e.Refused = e.Token.Compare(r.newest) < 0
			}
			if !e.Refused {
				r.newest = r.newest.Max(e.Token)
			}
			if !e.Refused && !shared[e.ID] {
				r.alone = e.Token
			}
			if e.Kind != history.Write {
				e.Value, e.Fenced = r.last, r.fenced
				break
			}
			r.last = e.ID
			if !e.Refused {
				r.fenced = e.ID
			}
		}
		events = append(events, e)
	}
	return events
}

// find returns the place of the event of a kind of a hold, or nil. If there are several, it is the last.
func (g *generated) find(id int, kind history.Kind) *moment {
	var found *moment
	for i := range g.moments {
		if m := &g.moments[i]; m.ID == id && m.Kind == kind && (found == nil || m.at > found.at) {
			found = m
		}
	}
	return found
}

// A mutation makes a mistake in a history. It reports whether it found a place for it.
type mutation func(g *generated) bool

// pair calls f with two holds of a name that follow each other and exclude each other, until f reports success.
func (g *generated) pair(f func(first, second int) bool) bool {
	for _, i := range g.rng.Perm(len(g.ids) - 1) {
		a, b := g.ids[i], g.ids[i+1]
		first, second := g.find(a, history.Granted), g.find(b, history.Granted)
		if first.Name == second.Name && first.Permits == 0 && !(first.Shared && second.Shared) && f(a, b) {
			return true
		}
	}
	return false
}

// overlap grants a lock before the newest check of the hold before, and lets the new hold be sure.
func overlap(g *generated) bool {
	return g.pair(func(a, b int) bool {
		check := g.find(a, history.Check)
		if check == nil || g.find(b, history.Check) == nil {
			return false
		}
		g.find(b, history.Granted).at = check.at - 0.001
		g.find(b, history.Acquire).at = check.at - 5
		return true
	})
}

// lostUpdate lets a work read before the work before it has written.
func lostUpdate(g *generated) bool {
	return g.pair(func(a, b int) bool {
		write := g.find(a, history.Write)
		if write == nil || g.find(b, history.Write) == nil {
			return false
		}
		g.find(b, history.Read).at = write.at - 0.001
		return true
	})
}

// changedRead lets a shared hold read again after the hold behind it has written.
func changedRead(g *generated) bool {
	return g.pair(func(a, b int) bool {
		again, write := g.find(a, history.Reread), g.find(b, history.Write)
		if again == nil || write == nil {
			return false
		}
		again.at = write.at + 0.001
		return true
	})
}

// thirdPermit grants a permit before the newest checks of two holds that have one, and lets the new hold be sure.
func thirdPermit(g *generated) bool {
	for i := range len(g.ids) - most {
		third, until, fewest := g.ids[i+most], math.Inf(1), math.MaxInt
		ok := g.find(third, history.Granted).Permits > 0 && g.find(third, history.Check) != nil
		for _, id := range g.ids[i : i+most+1] {
			fewest = min(fewest, g.find(id, history.Granted).Permits)
		}
		ok = ok && fewest == most
		for _, id := range g.ids[i : i+most] {
			check := g.find(id, history.Check)
			if ok = ok && check != nil && g.find(id, history.Granted).Permits > 0; ok {
				until = min(until, check.at)
			}
		}
		for _, id := range g.ids[i : i+most] {
			ok = ok && g.find(id, history.Granted).at < until-0.001
		}
		if ok {
			g.find(third, history.Granted).at, g.find(third, history.Acquire).at = until-0.001, until-5
			return true
		}
	}
	return false
}

// fallingToken gives the later of two sure holds the older token.
func fallingToken(g *generated) bool {
	return g.tokens && g.pair(func(a, b int) bool {
		if g.find(a, history.Check) == nil || g.find(b, history.Check) == nil {
			return false
		}
		first, second := g.find(a, history.Granted), g.find(b, history.Granted)
		first.Token, second.Token = second.Token, first.Token
		return true
	})
}

// anything moves an event to another time. The result may be right or wrong. Events of one hold stay
// in their order, as a worker that keeps to the protocol cannot change it.
func anything(g *generated) bool {
	id := g.ids[g.rng.IntN(len(g.ids))]
	var own []*moment
	for i := range g.moments {
		if g.moments[i].ID == id {
			own = append(own, &g.moments[i])
		}
	}
	slices.SortFunc(own, func(a, b *moment) int { return cmp.Compare(a.at, b.at) })
	shift := g.rng.Float64()*8 - 4
	from := g.rng.IntN(len(own))
	if shift > 0 { // this event and those behind it go later
		for _, m := range own[from:] {
			m.at += shift
		}
		return true
	}
	for _, m := range own[:from+1] {
		m.at += shift
	}
	return true
}
