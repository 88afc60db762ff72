package place

// Sight says on which connection a waiter has its newest knowledge of the queue. The rule is
// pure, and the checked model calls the same one: see package model.
type Sight struct {
	Gen     uint64 // generation of that connection; 0: not certain
	ByEvent bool   // the newest knowledge is from an event, and nothing was read since
}

// Combine adds the knowledge of a node on connection gen. read means that it was read just
// now, and not by an earlier watch. Combine returns false if the last event was on another
// connection: then the two do not count together, since the server of gen may lag behind that
// event.
func (s *Sight) Combine(gen uint64, read bool) bool {
	if s.ByEvent && gen != s.Gen {
		return false
	}
	if read {
		s.ByEvent = false
	}
	if gen != 0 {
		s.Gen = gen
	}
	return true
}
