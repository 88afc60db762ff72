package deadlock

import (
	"context"

	"github.com/zklock/go-zklock/zklock/internal/place"
)

// Circles returns the circles of registered waits that exist at a moment of the call, each from the wait
// that was registered last. Of several circles with the same last wait it returns one of the shortest. It
// reads on a session, and changes nothing.
func (d *Detector) Circles(ctx context.Context, s *place.Session) (circles [][]Link, err error) {
	if err := d.sync(ctx, s); err != nil {
		return nil, err
	}
	all, err := d.list(ctx, s)
	if err != nil {
		return nil, err
	}
	g := newGraph(all)
	for _, last := range all {
		found, links, err := d.search(ctx, s, g, last, nil)
		if err != nil {
			return nil, err
		}
		if found != nil {
			circles = append(circles, links)
		}
	}
	return circles, nil
}
