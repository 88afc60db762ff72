package place

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// ensureRoot makes sure that the root exists, and creates it and its ancestors if
// create_root allows that. The root is persistent and never removed.
func ensureRoot(ctx context.Context, ds driver.Session, cfg *Settings) error {
	_, err := ds.Get(ctx, cfg.Root)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, driver.ErrNoAuth):
		return cfg.explainRights([]string{cfg.readRoot().missing()}, err)
	case !errors.Is(err, driver.ErrNoNode):
		return cfg.explain(err, cfg.Root)
	case !cfg.CreateRoot:
		return fmt.Errorf("%w: create %s, or remove create_root from the URL", errs.ErrRootMissing, cfg.Root)
	}
	var refused error // the error of the last ancestor, if this client may not create it
	for end := 1; end <= len(cfg.Root); {
		if i := strings.IndexByte(cfg.Root[end:], '/'); i >= 0 {
			end += i
		} else {
			end = len(cfg.Root)
		}
		path := cfg.Root[:end]
		_, err = ds.Create(ctx, path, nil, driver.Persistent, cfg.acls())
		switch {
		case err == nil || errors.Is(err, driver.ErrNodeExists):
			refused = nil
		case errors.Is(err, driver.ErrNoAuth):
			// It may exist nevertheless: the create of the znode below it will show that.
			above := right{perm: "CREATE", on: path[:max(1, strings.LastIndexByte(path, '/'))], why: "to create " + path}
			if refused = cfg.explainRights([]string{above.missing()}, err); path == cfg.Root {
				return refused
			}
		case errors.Is(err, driver.ErrNoNode) && refused != nil:
			return refused
		default:
			return cfg.explain(err, path)
		}
		end++
	}
	return nil
}
