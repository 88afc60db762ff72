// Package place is one entry in ZooKeeper's queue of a name, or of several names at once:
// making it, waiting in it, watching over it, and leaving it. A Place belongs to one session,
// and is held again and again. Who holds it, and who gets it next, is not known here: the
// Requester makes a hold of it.
package place
