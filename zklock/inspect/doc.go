// Package inspect shows the locks of an ensemble on a web page: the names in use, their holders
// and waiters, and which contenders block each other. It is read-only.
//
//	mux.Handle("/debug/zklock/", inspect.Handler(client))
//
// The page and its API show names, hosts and labels. Mount them where only operators can
// reach them, as with net/http/pprof.
//
// All links are relative, so the handler works with and without http.StripPrefix. Methods
// other than GET and HEAD are answered 405. The requests:
//
//   - GET . is the page; ?prefix=orders/ shows the names that start with that, and
//     ?name=orders/42 the queue of one name.
//   - GET api/locks is the list as JSON, with the keys locks and more. prefix is as above;
//     limit is how many names to return at most, 1000 by default. more is true if there are
//     more names.
//   - GET api/locks/{name} is one name. The name is one segment: its slashes are written
//     %2F.
//   - GET api/events sends a server-sent event at once, and one whenever the list has changed; with
//     ?name=, whenever that name's queue has changed. An event's data is the number of a state. If
//     the page is read again after an event, it shows that state or a later one.
//
// In JSON, session ids and transaction ids are strings in hexadecimal, because they exceed
// what JavaScript's numbers can hold. Times are in the format of RFC 3339. Lists are never
// null. Fields may be added.
//
// A page that is open follows its name with [zklock.Client.Watch]; all pages of one name
// share one Watch. The list is read again every two seconds, or less often if that takes
// long, once for all pages that show it. A page that is read again after an event costs no
// request to the ensemble.
package inspect
