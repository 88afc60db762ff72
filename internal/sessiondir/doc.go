// Package sessiondir frees the locks of processes that have died on this machine.
//
// A client with a session directory keeps one file there for each of its sessions, with what
// another process needs to end the session, and holds an exclusive flock on it. The kernel
// releases the flock when the process dies, and at no other time. Two clients of each ensemble
// watch the directory; one of them takes the flock over, ends the session at the ensemble, and removes the
// file. So another process of the machine can have the lock some milliseconds after the death, also if one of the two
// is stopped. A third client takes the place of one that shows no sign of life for a second.
//
// To end the session of a process that lives would break exclusion. Invariants:
//
//   - A file is complete, and locked, before it gets its name, and it has its name before the
//     session is used. It keeps name and flock until the ensemble has ended the session.
//   - A session is ended only by a process that holds the flock of its file, in the very inode
//     that the record in the file names. A copy of the file ends nothing.
//   - A session is ended only if its process is gone, as far as this process can see, or has
//     given the session up itself.
//   - A session is ended only by a connector for the servers that the file names.
//   - An attempt that is not answered counts as failed: only an answer of the ensemble shows the end
//     of a session.
//
// The package works on Linux. Elsewhere Open and Reap return errors.
package sessiondir
