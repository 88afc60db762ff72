package deadlock

import (
	"context"
	"errors"

	"github.com/zklock/go-zklock/zklock/internal/place"
)

// Edge is a registered wait, from one node that it holds to a point that it stands behind. The locks are
// positions among the paths that the caller of Edges has.
type Edge struct {
	Held, Waiting int
	Zxid          int64 // of the node
	Before        int64 // it may wait for nodes with a lower zxid only
}

// Edges returns the registered waits among the locks with some paths, in the order of their registrations. It
// reads on a session, and changes nothing: the names of the registrations are enough.
func (d *Detector) Edges(ctx context.Context, s *place.WatchedDesk, paths []string) (edges []Edge, err error) {
	if err := d.sync(ctx, s); err != nil {
		return nil, err
	}
	all, err := d.list(ctx, s)
	if err != nil {
		return nil, err
	}
	at := make(map[uint64]int)
	for i, p := range paths {
		at[hash(d.cfg.Root, p)] = i
	}
	for _, w := range all {
		for _, b := range w.behind {
			waiting, known := at[b.lock]
			if !known {
				continue
			}
			for _, h := range w.held {
				if held, known := at[h.lock]; known {
					edges = append(edges, Edge{Held: held, Waiting: waiting, Zxid: h.zxid, Before: b.zxid})
				}
			}
		}
	}
	return edges, nil
}

// Circles returns the circles of registered waits that exist at a moment of the call, each from the wait
// that was registered last. Of several circles with the same last wait it returns one of the shortest. It
// reads on a session, and changes nothing.
func (d *Detector) Circles(ctx context.Context, s *place.WatchedDesk) (circles [][]Link, err error) {
	v := &reading{register: &d.register, s: s}
	if err := v.sync(ctx, s); err != nil { // else it may list what is over
		return nil, err
	}
	all, err := d.list(ctx, s)
	if err != nil {
		return nil, err
	}
	v.g = newGraph(all)
	for _, last := range all {
		found, err := v.search(ctx, last)
		switch {
		case errors.Is(err, errBounded): // it is not known
		case err != nil:
			return nil, err
		case found != nil:
			circles = append(circles, found.links)
		}
	}
	return circles, nil
}
