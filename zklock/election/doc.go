// Package election elects one leader among candidates in many processes. It works on
// zklock's public API: an election is a mutex, its leader is the holder, and its candidates
// are the contenders.
//
//	e := election.New(client, "billing", election.WithValue("10.0.0.7:8080"))
//	err := e.Run(ctx, func(ctx context.Context, t *election.Term) error {
//		return serve(ctx) // until ctx ends
//	})
//
// [Election.Run] stands for election again and again. [Election.Campaign] stands once and
// returns a [Term]. [Election.Leader] and [Election.Observe] show the leader to other processes:
// the value that the leader gave, and the token of its term.
//
// # Terms
//
// Each term has a queue node of its own, and so a [zklock.Token] with a Zxid of its own. A
// place of an election is never handed over inside the process, kept, or shared. Otherwise
// an observer could not see that the leader has changed.
//
// The context of a term ends before another candidate can lead, with the exceptions that
// [zklock.Lock] names: an operator that deletes the node, and a process that was stopped.
// Pass the term's Token to the resources that the leader writes to, so that they can refuse
// late writes.
//
// # Operators' views
//
// A candidate waits and a leader holds for as long as nothing is wrong. Candidacies are marked with
// [zklock.WithCandidacy], so [zklock.Stats], metrics, profiles and lists do not take them for locks that
// hang.
//
// # Values
//
// The value travels as the label of the candidate's queue node. The node is created with it,
// so a leader has its value from its first moment. [Term.SetValue] replaces it for the rest
// of the term.
//
// # Other libraries
//
// The name of an election is the name of a mutex. A [zklock.Client.Mutex] of that name and the
// election exclude each other, and its holder and waiters are candidates. With the URL key
// dialect=curator an election shares its name with Curator's LeaderSelector, with dialect=latch
// with its LeaderLatch, and with dialect=kazoo with kazoo's Election. The values of their
// leaders cannot be read: only Token and Node of such a [Leader] are set.
package election
