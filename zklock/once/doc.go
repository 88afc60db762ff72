// Package once runs a job once for each slot in a fleet of processes, such as a report for
// each hour. The processes take a lock of zklock's, and a ledger in ZooKeeper says which slot
// has run last.
//
// [Every] is a schedule: it runs a job each hour, for example, until its context ends. It tries slots
// that fail again, and has a rule for slots that were missed.
//
//	err := once.Every(ctx, client, "hourly-report", time.Hour, report, once.WithMissed(once.RunAll))
//
// [Do] is one call for one slot, for programs that have a schedule of their own:
//
//	slot := time.Now().UTC().Truncate(time.Hour).Format(time.RFC3339)
//	ran, err := once.Do(ctx, client, "hourly-report", slot, func(ctx context.Context) error {
//		return report(ctx, slot)
//	})
//
// A lock alone cannot do that: a process that is late finds the lock free again, and runs the job a
// second time. How late it may be depends on how long the job takes and on how far the clocks of
// the processes differ. Here neither matters. The ledger is compared and written under the lock, by
// a transaction that is applied only while the lock is held.
//
// # Slots
//
// A slot is any text, and slots are compared byte by byte. The ledger has one slot for each
// name, the highest that has run. A slot that is not above it does not run. So slots have to
// rise with time: RFC 3339 in UTC without fractions of a second, a date, or a number with
// leading zeros. [time.RFC3339Nano] does not: it leaves zeros out.
//
// A process whose clock is ahead runs a slot early. From then on the slots before that one cannot
// run. To run each slot, call Do for each of them in order, or Every with [RunAll].
//
// # Guarantees
//
// A slot that has run successfully, so that Do has returned nil for it, never runs again, unless
// an operator changes the ledger or calls [Forget]. Two processes never run a slot of one name
// at the same time, with the exceptions that [zklock.Lock] names.
//
// The job runs at least once, and not exactly once. If the process dies, or loses the lock,
// after the job has done its work and before the ledger is written, another process runs the
// slot again. The second run has a higher [zklock.Token], which [zklock.FromContext] returns. Pass
// it to the resources that the job writes to, or make the job repeatable.
//
// # Ledgers
//
// The lock of a name is that of [zklock.Client.Mutex]. The ledger is a persistent znode below the
// root with the name "~" followed by the encoded name, in all dialects. No lock has such a znode:
// see [zklock.ErrInvalidName] for the names that begin with "~". It stays until Forget removes
// it. Ledgers of one client are created with its access list: see [zklock.Client.ACL].
package once
