// Package deadlock finds waits of several processes that wait for each other in a circle, and ends one of
// them.
//
// Only an acquisition whose context carries a lock, or that wants several names, can be in a circle: a
// nested wait. One of several names has its nodes in all queues while it waits in one of them, and is in the
// way there. A nested wait that has lasted for deadlock_timeout is registered: it gets a znode below the
// register, which says what it waits for, and what its context holds or it is in the way of. A look at the
// register shows the circle to the last of its waits that was registered, since the others were registered
// before it. That wait ends. The others do nothing. Detector has the invariants from which it follows that
// one wait of a circle ends, and that its circle existed.
//
// Nothing is written or read for a wait before deadlock_timeout has passed. The detector only notes that the
// wait has begun. After that a busy queue costs little, too: rounds are at least half of
// deadlock_timeout apart, however many waits there are, and history says how rarely a wait is registered again.
package deadlock
