package deadlock

import (
	"context"
	"errors"

	"github.com/zklock/go-zklock/zklock/internal/place"
)

// Circles returns the circles of registered waits that exist at a moment of the call, each from the wait
// that was registered last. Of several circles with the same last wait it returns one of the shortest. It
// reads on a session, and changes nothing.
func (d *Detector) Circles(ctx context.Context, s *place.Session) (circles [][]Link, err error) {
	v := &view{register: &d.register, s: s}
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
