// Package deadlock finds waits of several processes that wait for each other in a circle, and ends one of
// them.
//
// Only an acquisition whose context carries a lock, or that wants several names, can be in a circle: a
// nested wait. An acquisition of several names has nodes in all queues while it waits in one of them, and is in the
// way there. The client registers a nested wait that has lasted for deadlock_timeout: a znode below the
// register says what the wait waits for, what its context holds, and where it is in the way. Each client looks at the
// register after it has registered a wait. So the client of the wait that was registered last sees the whole
// circle, and ends that wait. The other waits go on. Detector has the invariants from which it follows that
// one wait of a circle ends, and that its circle existed.
//
// Nothing is written or read for a wait before deadlock_timeout has passed. The detector only notes that the
// wait has begun. After that a busy queue costs little, too: rounds are at least half of
// deadlock_timeout apart, however many waits there are, and history says how rarely a wait is registered again.
package deadlock
