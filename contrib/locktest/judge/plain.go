package judge

import (
	"cmp"
	"slices"
	"sort"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// Plain counts what is wrong with holds.
func Plain(holds []Hold) Verdict { return look(holds).Verdict }

// finder counts what is wrong, and notes each mistake.
type finder struct {
	Verdict
	found []single
}

// single is one mistake: what is wrong with a hold, and the other hold that shows it; the zero Hold if there is none.
type single struct {
	What  What
	At    int64
	h, by Hold
}

// add notes a mistake in a count.
func (f *finder) add(count *int, what What, at int64, h, by Hold) {
	*count++
	f.found = append(f.found, single{what, at, h, by})
}

// look looks for all mistakes.
func look(holds []Hold) *finder {
	f := new(finder)
	for _, of := range byName(holds) {
		for _, o := range overlaps(of) {
			f.add(&f.Overlaps, OverlappedHold, max(o.by.Granted, o.held.Granted), o.held, o.by)
		}
		f.tokens(of)
		f.register(of)
		f.fenced(of)
	}
	return f
}

// overlap is a hold whose sure part another one has overlapped.
type overlap struct{ held, by Hold }

// spans are when the sure parts of holds began, in their order, and of the parts up to each, the one that ends last.
type spans struct {
	began []int64
	last  []Hold
}

// add adds the hold that was granted last.
func (s *spans) add(h Hold) {
	s.began = append(s.began, h.Granted)
	if n := len(s.last); n > 0 && s.last[n-1].Sure > h.Sure {
		h = s.last[n-1]
	}
	s.last = append(s.last, h)
}

// before returns the hold whose sure part ends last of those that began before a time.
func (s *spans) before(at int64) (h Hold) {
	if i := sort.Search(len(s.began), func(i int) bool { return s.began[i] >= at }); i > 0 {
		h = s.last[i-1]
	}
	return h
}

// overlaps looks at the sure parts of the holds of a name, in the order in which they began. It returns what another hold
// overlapped, once for each overlap. Holds without a sure part existed at a moment between request and grant, which must not lie
// whole in the sure part of another hold. Those of permits are left out.
func overlaps(holds []Hold) (overlapped []overlap) {
	var alone, all spans
	excluding := func(h Hold) *spans {
		if h.Shared || h.Permits > 0 {
			return &alone
		}
		return &all
	}
	var permits []Hold // whose sure parts may last
	for _, h := range holds {
		if h.Sure == 0 {
			continue
		}
		permits = slices.DeleteFunc(permits, func(o Hold) bool { return o.Sure < h.Granted })
		if o := excluding(h).before(h.Granted); h.Granted <= o.Sure {
			overlapped = append(overlapped, overlap{o, h})
		} else if h.Permits > 0 && len(permits) >= least(h, permits) {
			overlapped = append(overlapped, overlap{permits[0], h})
		}
		switch all.add(h); {
		case h.Permits > 0:
			permits = append(permits, h)
		case !h.Shared:
			alone.add(h)
		}
	}
	for _, h := range holds {
		if o := excluding(h).before(h.Asked); h.Sure == 0 && h.Permits == 0 && h.Granted < o.Sure {
			overlapped = append(overlapped, overlap{o, h})
		}
	}
	return overlapped
}

// least returns the least number of permits that a hold and others have asked for.
func least(h Hold, others []Hold) int {
	n := h.Permits
	for _, o := range others {
		n = min(n, o.Permits)
	}
	return n
}

// tokens looks at the tokens of holds with a sure part. That of a shared hold must be newer than those of exclusive holds before it,
// and that of an exclusive hold newer than all before it. Those of permits are not compared.
func (f *finder) tokens(holds []Hold) {
	var alone, newest history.Token
	var before Hold // with the newest token
	for _, h := range holds {
		if h.Sure == 0 || h.Token == "" || h.Permits > 0 {
			continue
		}
		if !h.Shared && h.Token.Compare(newest) <= 0 || h.Token.Compare(alone) <= 0 {
			f.add(&f.Fell, TokenFell, h.Granted, h, before)
		} else {
			before = h
		}
		if newest = newest.Max(h.Token); !h.Shared {
			alone = alone.Max(h.Token)
		}
	}
}

// register looks at the works on a name's plain register, in the order of their writes. Each must have
// read what the one before has written. A shared hold must read the same twice.
func (f *finder) register(holds []Hold) {
	last, writer := 0, Hold{}
	for _, h := range inOrderOfWrites(holds) {
		if h.Shared && h.Saw != h.Again || !h.Shared && h.Saw != last {
			f.add(&f.Lost, LostUpdate, h.Write, h, writer)
		}
		if !h.Shared {
			last, writer = h.ID, h
		}
	}
}

// fenced does the same for the accesses that the fenced register accepted. Their tokens must rise.
func (f *finder) fenced(holds []Hold) {
	last, token, writer := 0, history.Token(""), Hold{}
	for _, h := range inOrderOfWrites(holds) {
		if h.ReadRefused || h.WriteRefused {
			continue
		}
		falls := h.Token != "" && h.Token.Compare(token) <= 0
		if h.Shared && h.SawFenced != h.AgainFenced || !h.Shared && (h.SawFenced != last || falls) {
			f.add(&f.FencedLost, LostAfterFencing, h.Write, h, writer)
		}
		if !h.Shared {
			last, token, writer = h.ID, token.Max(h.Token), h
		}
	}
	reads := slices.DeleteFunc(slices.Clone(holds), func(h Hold) bool { return h.Read == 0 || h.ReadRefused })
	slices.SortFunc(reads, func(a, b Hold) int { return cmp.Compare(a.Read, b.Read) })
	for i, h := range reads {
		interrupts := func(o Hold) bool { return o.Read >= h.Write || !h.Shared || !o.Shared }
		next := slices.IndexFunc(reads[i+1:], interrupts)
		if next >= 0 && !h.WriteRefused && reads[i+1+next].Read < h.Write {
			f.add(&f.FencedOverlaps, OverlapAfterFencing, reads[i+1+next].Read, h, reads[i+1+next])
		}
	}
	for _, h := range holds {
		if h.ReadRefused && h.Read < h.Sure || h.WriteRefused && h.Write < h.Sure {
			f.add(&f.Refused, RefusedHolder, max(h.Read, h.Write), h, Hold{})
		}
	}
}

// inOrderOfWrites are the holds that have written.
func inOrderOfWrites(holds []Hold) []Hold {
	wrote := slices.DeleteFunc(slices.Clone(holds), func(h Hold) bool { return h.Write == 0 })
	slices.SortFunc(wrote, func(a, b Hold) int { return cmp.Compare(a.Write, b.Write) })
	return wrote
}
