// Package worker has the protocol between locktest and the programs that use a lock library, and a
// helper for such programs in Go. It imports the standard library only.
//
// # The protocol
//
// A worker is a program that uses one lock library. Locktest starts several processes of it. A worker
// reads requests from its standard input and writes answers to its standard output. Each is one line,
// a JSON object: see [Message]. What a worker writes to its standard error goes to locktest's.
//
// The environment has the settings: LOCKTEST_SERVERS, the addresses of the servers with commas
// between them, and LOCKTEST_TTL, the time after which a dead client's locks must be free, such as 4s.
//
// A worker begins with {"op":"ready"}. Then each acquisition has a number, its id, which all its lines
// have. Several acquisitions, also of one name, can be under way at the same time.
//
//	request                                    answers
//	{"op":"acquire","id":7,"name":"a"}         {"op":"granted","id":7,"name":"a","token":"12"}
//	                                           {"op":"failed","id":7,"name":"a","reason":"..."}
//	{"op":"acquire","id":8,"name":"b",         the same
//	 "holding":7}
//	{"op":"check","id":7,"name":"a"}           {"op":"held","id":7,"name":"a"}
//	                                           {"op":"lost","id":7,"name":"a"}
//	{"op":"release","id":7,"name":"a"}         {"op":"released","id":7,"name":"a"}
//	                                           {"op":"failed","id":7,"name":"a","reason":"..."}
//
// The rules:
//
//   - Each acquire has one answer, as late as the library has one. After failed, the acquisition is over,
//     and the worker holds nothing and waits for nothing.
//   - holding is the number of the acquisition whose lock the client holds while it waits. A library that
//     finds deadlocks may need that. The worker of another one ignores it.
//   - A granted line has the library's fencing token, a text, if the library has one. Of two tokens the
//     longer one is newer, and of two of the same length the one that sorts later.
//   - A check asks what the library believes at this moment. The worker answers at once, from the signal
//     of loss that the library's documentation recommends.
//   - A worker writes lost without a request, too, as soon as the library reports the loss. A second
//     lost for the same id does no harm. One that comes before granted counts as if it came after it.
//   - A worker that answers in another way, such as by a grant of what does not wait, ends the run by an error.
//   - Each acquisition that was granted is released, also after a loss. Each release has one answer,
//     after which the acquisition is over.
//   - At the end of its standard input a worker ends at once.
package worker
