package judge

import (
	"cmp"
	"slices"
	"sort"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// Verdict is what is wrong with a history. The zero value says that nothing is.
type Verdict struct {
	// Overlaps is how many holds began, or existed, while the sure part of another hold of the name
	// lasted.
	Overlaps int

	// Fell is how many tokens were not greater than that of the hold before.
	Fell int

	// Lost is how many updates of a plain register were lost.
	Lost int

	// FencedOverlaps is how many works another hold interrupted, although the register is fenced: the
	// register accepted their read, then the other hold's, then their write.
	FencedOverlaps int

	// FencedLost is how many updates of a fenced register were lost, or had a token that was not
	// greater than that of the update before.
	FencedLost int
}

// Safe reports whether the locks excluded each other and their tokens rose: then a fenced register loses
// nothing.
func (v Verdict) Safe() bool {
	return v.Overlaps == 0 && v.Fell == 0 && v.FencedOverlaps == 0 && v.FencedLost == 0
}

// Plain judges holds by counting.
func Plain(holds []Hold) Verdict {
	var v Verdict
	for _, of := range byName(holds) {
		v.exclusion(of)
		v.register(of)
		v.fenced(of)
	}
	return v
}

// exclusion looks at the sure parts of the holds of a name, in the order in which they began. Holds
// without a sure part existed at a moment between request and grant, which must not lie whole in the
// sure part of another hold.
func (v *Verdict) exclusion(holds []Hold) {
	var sure []Hold
	var until []int64 // the latest end of the first sure parts
	last, token := int64(0), history.Token("")
	for _, h := range holds {
		if h.Sure == 0 {
			continue
		}
		if h.Granted <= last {
			v.Overlaps++
		}
		if h.Token != "" && h.Token.Compare(token) <= 0 {
			v.Fell++
		}
		last, token = max(last, h.Sure), token.Max(h.Token)
		sure, until = append(sure, h), append(until, last)
	}
	for _, h := range holds {
		before := sort.Search(len(sure), func(i int) bool { return sure[i].Granted >= h.Asked })
		if h.Sure == 0 && before > 0 && h.Granted < until[before-1] {
			v.Overlaps++
		}
	}
}

// register looks at the works on a name's plain register, in the order of their writes. Each must have
// read what the one before has written.
func (v *Verdict) register(holds []Hold) {
	last := 0
	for _, h := range inOrderOfWrites(holds) {
		if h.Saw != last {
			v.Lost++
		}
		last = h.ID
	}
}

// fenced does the same for the accesses that the fenced register accepted. Their tokens must rise.
func (v *Verdict) fenced(holds []Hold) {
	last, token := 0, history.Token("")
	for _, h := range inOrderOfWrites(holds) {
		if h.ReadRefused || h.WriteRefused {
			continue
		}
		if h.SawFenced != last || h.Token != "" && h.Token.Compare(token) <= 0 {
			v.FencedLost++
		}
		last, token = h.ID, token.Max(h.Token)
	}
	reads := slices.DeleteFunc(slices.Clone(holds), func(h Hold) bool { return h.Read == 0 || h.ReadRefused })
	slices.SortFunc(reads, func(a, b Hold) int { return cmp.Compare(a.Read, b.Read) })
	for i, h := range reads {
		if i+1 < len(reads) && !h.WriteRefused && reads[i+1].Read < h.Write {
			v.FencedOverlaps++
		}
	}
}

// inOrderOfWrites are the holds that have written.
func inOrderOfWrites(holds []Hold) []Hold {
	wrote := slices.DeleteFunc(slices.Clone(holds), func(h Hold) bool { return h.Write == 0 })
	slices.SortFunc(wrote, func(a, b Hold) int { return cmp.Compare(a.Write, b.Write) })
	return wrote
}
