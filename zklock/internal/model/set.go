package model

import "slices"

// none is the number of no state.
const none = ^uint32(0)

// set has the hashes of the states, numbered from 0 as they are found, and for each the state
// that first led to it.
type set struct {
	hashes []uint64
	from   []uint32
	slots  []uint32 // a hash table of numbers plus 1; 0: empty
}

func newSet() *set { return &set{slots: make([]uint32, 1<<12)} }

func (s *set) len() int { return len(s.hashes) }

// add adds a hash that was found from a state. It returns false if the set has the hash.
func (s *set) add(hash uint64, from uint32) bool {
	if len(s.hashes)*2 >= len(s.slots) {
		s.slots = make([]uint32, 2*len(s.slots))
		for n, h := range s.hashes {
			*s.slot(h) = uint32(n) + 1
		}
	}
	at := s.slot(hash)
	if *at != 0 {
		return false
	}
	s.hashes, s.from = append(s.hashes, hash), append(s.from, from)
	*at = uint32(len(s.hashes))
	return true
}

// slot returns the slot of a hash, or the empty one where it belongs.
func (s *set) slot(hash uint64) *uint32 {
	mask := uint64(len(s.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		if n := s.slots[i]; n == 0 || s.hashes[n-1] == hash {
			return &s.slots[i]
		}
	}
}

// way returns the hashes of the states on the way to a state, from the first on.
func (s *set) way(number uint32) (hashes []uint64) {
	for n := number; n != none; n = s.from[n] {
		hashes = append(hashes, s.hashes[n])
	}
	slices.Reverse(hashes)
	return hashes
}
