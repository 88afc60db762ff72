package zklock

import "sync/atomic"

// common is what all parts of a client use. None of it knows of any of them.
type common struct {
	cfg      config
	counters counters
	parents  parents
	reaper   reaper
	zxids    zxids
}

// zxids watches over the ids of the transactions that create queue nodes, which tokens
// are made of.
type zxids struct {
	newest    atomic.Int64
	regressed atomic.Bool // a later one had a smaller id: tokens cannot be trusted any more
}
