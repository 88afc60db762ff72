// Package contention profiles distributed locks: which line of code waits, for which kind of
// lock, and which handler held it; and which line holds a lock now. go tool pprof reads the
// profiles, as it reads Go's mutex profile.
//
//	profile := contention.New()
//	client, err := zklock.Open(url, zklock.WithHooks(profile.Hooks()))
//	mux.Handle("/debug/zklock/contention", profile.Handler())
//	mux.Handle("/debug/zklock/held", profile.HeldHandler())
//
// Serve them where only operators can reach them.
//
// # Waits
//
// Every wait of a millisecond or more is in the profile of waits, those that have not ended yet
// included, with what they have waited so far. So a difference (?seconds=30) has the waiting
// that was done in these seconds. The sample types are those of the mutex profile:
// contentions/count and delay/nanoseconds. The stack of a sample has the calls that led to
// Acquire, then a frame for the class of the lock, then one for the contender that was ahead. If
// the contender ahead changes, or its label becomes known during the wait, the delay is divided; the
// wait counts once, for the first:
//
//	main.(*shop).pay    the calls; package zklock and those below it are left out
//	lock orders/*       the class: see WithClass
//	held by web         the holder, on a host web-3 or in a pod web-7d9f8b6c4-x2k9p: see WithHolderLabels
//	behind web          or a waiter, since a client does not know which contender is ahead of that one
//
// Frames have no addresses, so profiles of several replicas, and of several builds, merge:
// go tool pprof http://web-1/debug/zklock/contention http://web-2/debug/zklock/contention.
//
// The waits of an election's candidates are left out, unless [WithCandidacies] is set: they wait on
// purpose. So are those of all acquisitions with zklock.WithCandidacy.
//
// # Held locks
//
// The profile of held locks has the locks that are held at that moment, by the calls that led to
// Acquire, like the custom profiles of runtime/pprof: locks/count and held/nanoseconds. A lock
// that is kept in a slice, or dropped without a Release, stays in it until its session ends. Leaders of
// elections are left out like their candidates.
//
// # Cost
//
// An acquisition that does not wait costs no allocation, and one look at the call stack, for the
// held locks. One that waits costs some microseconds. Up to 32,768 different samples are kept;
// beyond half of that, new ones leave out class and holder, and beyond that the call site.
package contention
