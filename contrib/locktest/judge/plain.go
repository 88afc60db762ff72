package judge

import (
	"cmp"
	"slices"
	"sort"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// Plain counts what is wrong with holds.
func Plain(holds []Hold) Verdict {
	var v Verdict
	for _, of := range byName(holds) {
		v.Overlaps += len(overlaps(of))
		v.tokens(of)
		v.register(of)
		v.fenced(of)
	}
	return v
}

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
func overlaps(holds []Hold) (overlapped []Hold) {
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
			overlapped = append(overlapped, o)
		} else if h.Permits > 0 && len(permits) >= h.Permits {
			overlapped = append(overlapped, permits[0])
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
			overlapped = append(overlapped, o)
		}
	}
	return overlapped
}

// tokens looks at the tokens of holds with a sure part. That of a shared hold must be newer than those of exclusive holds before it,
// and that of an exclusive hold newer than all before it. Those of permits are not compared.
func (v *Verdict) tokens(holds []Hold) {
	var alone, newest history.Token
	for _, h := range holds {
		if h.Sure == 0 || h.Token == "" || h.Permits > 0 {
			continue
		}
		if !h.Shared && h.Token.Compare(newest) <= 0 || h.Token.Compare(alone) <= 0 {
			v.Fell++
		}
		if newest = newest.Max(h.Token); !h.Shared {
			alone = alone.Max(h.Token)
		}
	}
}

// register looks at the works on a name's plain register, in the order of their writes. Each must have
// read what the one before has written. A shared hold must read the same twice.
func (v *Verdict) register(holds []Hold) {
	last := 0
	for _, h := range inOrderOfWrites(holds) {
		if h.Shared && h.Saw != h.Again || !h.Shared && h.Saw != last {
			v.Lost++
		}
		if !h.Shared {
			last = h.ID
		}
	}
}

// fenced does the same for the accesses that the fenced register accepted. Their tokens must rise.
func (v *Verdict) fenced(holds []Hold) {
	last, token := 0, history.Token("")
	for _, h := range inOrderOfWrites(holds) {
		if h.ReadRefused || h.WriteRefused {
			continue
		}
		falls := h.Token != "" && h.Token.Compare(token) <= 0
		if h.Shared && h.SawFenced != h.AgainFenced || !h.Shared && (h.SawFenced != last || falls) {
			v.FencedLost++
		}
		if !h.Shared {
			last, token = h.ID, token.Max(h.Token)
		}
	}
	reads := slices.DeleteFunc(slices.Clone(holds), func(h Hold) bool { return h.Read == 0 || h.ReadRefused })
	slices.SortFunc(reads, func(a, b Hold) int { return cmp.Compare(a.Read, b.Read) })
	for i, h := range reads {
		interrupts := func(o Hold) bool { return o.Read >= h.Write || !h.Shared || !o.Shared }
		next := slices.IndexFunc(reads[i+1:], interrupts)
		if next >= 0 && !h.WriteRefused && reads[i+1+next].Read < h.Write {
			v.FencedOverlaps++
		}
	}
	for _, h := range holds {
		if h.ReadRefused && h.Read < h.Sure || h.WriteRefused && h.Write < h.Sure {
			v.Refused++
		}
	}
}

// inOrderOfWrites are the holds that have written.
func inOrderOfWrites(holds []Hold) []Hold {
	wrote := slices.DeleteFunc(slices.Clone(holds), func(h Hold) bool { return h.Write == 0 })
	slices.SortFunc(wrote, func(a, b Hold) int { return cmp.Compare(a.Write, b.Write) })
	return wrote
}
