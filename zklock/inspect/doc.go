// Package inspect shows the locks of an ensemble on a web page: the names in use, their holders
// and waiters, which contenders block each other, and deadlocks. It is read-only.
//
//	mux.Handle("/debug/zklock/", inspect.Handler(client))
//
// The page and its API show names, hosts and labels. Mount them where only operators can
// reach them, as with net/http/pprof.
//
// All links are relative, so the handler works with and without http.StripPrefix. Methods
// other than GET and HEAD are answered 405, and other paths 404. The requests:
//
//   - GET . is the page. Its first line is about the client of the page: why it acquires nothing, or what it
//     holds. Its head line says what is stuck, and which process is at the end. The leader of
//     an election and its candidates hold and wait on purpose: they are shown as such, and neither
//     the head line nor an order but that of names puts them first. ?sort= is
//     wait (the default), waiters, age or name; ?q= shows only names that contain a text, and ?prefix=
//     reads only names that begin with it; ?rows= and ?page= reach all names.
//     ?name=orders/42 is the queue of one name, with a tree of what holds it up across names: from each
//     holder to what it has registered to wait for, with [zklock.Client.NestedWaits], and so on. ?host=web-3,
//     with &pid=812, and ?session=0x… are all that a host, a process or a session holds and waits for.
//     &format=text is the same for terminals. If a session of this process has left a server that had
//     fallen silent, all pages say so for ten minutes.
//   - GET api/locks is the list as JSON, with the keys locks and more. limit is how many names to
//     return at most, 1000 by default. more is true if there are more names.
//   - GET api/locks/{name} is one name. The name is one segment: its slashes are written
//     %2F.
//   - GET api/events sends a server-sent event at once, and one whenever the list has changed; with
//     ?name=, whenever that name's queue has changed. An event's data is the number of a state. If
//     the page is read again after an event, it shows that state or a later one. The data of an event
//     "silent" is since when the ensemble has not answered, in milliseconds since the Unix epoch; 0
//     if it answers.
//
// In JSON, session ids and transaction ids are strings in hexadecimal, because they exceed
// what JavaScript's numbers can hold. Times are in the format of RFC 3339 with milliseconds, or null.
// Lists are never null. Fields may be added.
//
// ZooKeeper does not say since when a contender has held a lock. The page says it if an open page
// has seen the grant; otherwise it says when the holder has asked.
//
// A page that is open follows its name with [zklock.Client.Watch]; all pages of one name
// share one Watch. The list of all names, and the deadlocks, are read again every two seconds, and for the
// page of a name every ten, or less often if that takes long, once for all pages that show it. A page that
// is read again after an event costs no request to the ensemble.
//
// Deadlocks are those of [zklock.Client.Deadlocks], which needs READ on the register of waits. A deadlock lasts
// for a moment, since one of its waits fails. One that stays has a client that does not run, or that cannot
// read the register. The tree of a name also shows circles that it finds by the
// processes, or the traces, of holders and waiters. They may be none: one request of a process may hold, and
// another one wait. But there may be waits that are never registered among them, such as those of clients with
// deadlock_timeout=0, and of other libraries.
package inspect
