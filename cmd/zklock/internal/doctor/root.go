package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
)

// missingRoot reports whether the first client to acquire a lock can create the root. It tries that
// in a transaction that fails at its end, so nothing is created.
func (r *Report) missingRoot(ctx context.Context, p Patient) {
	missing := fmt.Sprintf("the root %s does not exist", p.URL.Root)
	if !p.CreatesRoot {
		r.toDo("root", missing+", and create_root=false", fmt.Sprintf("create %s, or remove create_root from the URL", p.URL.Root))
		return
	}
	err := tryRoot(ctx, p)
	switch {
	case err == nil:
		r.warn("root", missing+": no lock was used there, or the URL has another root", "compare the roots in the URLs; the first client that acquires a lock creates the root")
	case errors.Is(err, driver.ErrInvalidACL):
		r.toDo("root", fmt.Sprintf("%s, and the servers refuse its access list: %v", missing, err),
			another(p.URL)+", or correct acl in the URL; for SASL, set authProvider.sasl in zoo.cfg of all servers")
	case errors.Is(err, driver.ErrNoAuth):
		r.toDo("root", fmt.Sprintf("%s, and this user cannot create it: %v", missing, err),
			fmt.Sprintf("create %s with rights for this user, grant CREATE above it, or %s", p.URL.Root, another(p.URL)))
	default:
		r.warn("root", fmt.Sprintf("%s, and whether this user can create it is not known: %v", missing, err), "run doctor again")
	}
}

// tryRoot returns why this user cannot create the root.
func tryRoot(ctx context.Context, p Patient) error {
	connector, err := p.Driver.OpenConnector(p.URL)
	if err != nil {
		return err
	}
	defer connector.Close()
	session, err := connector.Connect(ctx, p.SessionTimeout)
	if err != nil {
		return err
	}
	defer session.Close(context.WithoutCancel(ctx))
	var ops []driver.Op
	for at, c := range p.URL.Root + "/" {
		if c != '/' || at == 0 {
			continue
		}
		path := p.URL.Root[:at]
		_, err := session.Get(ctx, path)
		if errors.Is(err, driver.ErrNoNode) {
			ops = append(ops, driver.CreateOp(path, nil, driver.Persistent, p.Client.ACL()))
		}
	}
	never := strings.TrimSuffix(p.URL.Root, "/") + "~never"
	_, err = session.Multi(ctx, append(ops, driver.CheckOp(never, driver.AnyVersion)))
	if errors.Is(err, driver.ErrNoNode) {
		return nil // the creates would have been applied
	}
	return err
}
