// Package lease computes for how long a ZooKeeper session is proven to be alive, and
// has the clock that the computation uses.
package lease
