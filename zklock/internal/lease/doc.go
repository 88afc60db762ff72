// Package lease says for how long a ZooKeeper session is proven to be alive, and by
// which clock.
package lease
