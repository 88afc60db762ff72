package session

// ZooKeeper's servers write all paths of a session's ephemeral znodes into the transaction that ends the
// session, since version 3.6.0 (ZOOKEEPER-4306). They do not check its size when they write it, and they do
// when they read it: from another server, and from the log. One that is too large stops the ensemble for
// good: no follower can read it, and no server can start again. The limit is jute.maxbuffer and the extra
// size, which is as much again by default.
//
// So a session never has more bytes of such paths than ephemerals, but for a reserve of registrations:
// see Reserve. Invariants:
//
//   - A place and a registration count from before their creates are sent until their znodes are certainly
//     gone. A place that replaces another one takes over the count: one transaction deletes and creates.
//   - An ephemeral znode of the program, which a transaction under a lock creates, counts from before the
//     transaction is sent until another such transaction has deleted it. The client does not learn of
//     other deletes. So these have at most half of the room: locks never lack room because of them.
//   - What is not counted is in the rest of jute.maxbuffer and in the extra size: creates that are applied
//     late, until the client deletes them.
//   - A session takes a place, or refuses it, by its count at that moment. So it does not matter that the
//     pool has chosen the session before, for many callers at once: Enter decides, and one that is refused
//     asks the pool again.

// EphemeralSize returns how many bytes an ephemeral znode with a path of that length has in the transaction
// that ends its session.
func EphemeralSize(pathLength int) int { return 4 + pathLength }

// hasRoom reports whether the session may have so many more bytes of ephemeral znodes; less than 0: beyond its
// room, from a reserve. Without mu that may change at once.
func (s *life) hasRoom(bytes int) bool {
	return bytes == 0 || int(s.bytes.Load())+bytes <= ephemerals(s.common.bounds.limit(s.settings))
}

// mayHaveRoom is hasRoom if the servers read all that is not known to be too large: see Session.grow.
func (s *life) mayHaveRoom(bytes int) bool {
	return s.hasRoom(bytes) || int(s.bytes.Load())+bytes <= ephemerals(s.common.bounds.hoped(s.settings))
}

// Ephemerals returns how many bytes the session's ephemeral znodes have, and how many they have at most.
func (s *life) Ephemerals() (bytes, most int) {
	return int(s.bytes.Load()), ephemerals(s.common.bounds.hoped(s.settings))
}
