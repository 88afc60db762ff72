package judge

// Verdict is what is wrong with a history. The zero value says that nothing is.
type Verdict struct {
	// Overlaps is how many holds began, or existed, while the sure part of another hold of the name
	// lasted.
	Overlaps int

	// Fell is how many tokens were not greater than that of the hold before.
	Fell int

	// Lost is how many updates of a plain register were lost.
	Lost int

	// Refused is how many holders the fenced register refused although the library believed in their holds afterwards.
	Refused int

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
