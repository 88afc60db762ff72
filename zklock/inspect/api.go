package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
)

// list is the answer of api/locks.
type list struct {
	Locks []operator.Lock `json:"locks"`
	More  bool            `json:"more"`

	register operator.Register
	unknown  string // why the register is not known
}

// Limits of a list.
const (
	defaultLimit = 1000
	maxLimit     = 100_000
)

// read reads the names that start with prefix, limit of them at most. took is how long the servers worked
// for it: the time from the first answer on, without the wait for a connection. each, if it is not nil, gets what was read.
func (i *inspector) read(ctx context.Context, prefix string, limit int, each func(zklock.LockInfo)) (l list, took time.Duration, err error) {
	i.pulse.begin()
	defer func() { i.pulse.end(unanswered(err)) }()
	began, all := i.holds.Begin(), prefix == ""
	var first time.Time
	l.Locks = []operator.Lock{}
	for info, err := range i.client.Locks(ctx, prefix) {
		if err != nil && info.Name == "" {
			return list{}, 0, err
		}
		i.pulse.answer()
		if first.IsZero() {
			first = time.Now()
		}
		if len(l.Locks) == limit {
			l.More = true
			break
		}
		if l.Locks = append(l.Locks, i.show(info, err)); each != nil {
			each(info)
		}
		all = all && err == nil
	}
	i.pulse.answer()
	if all && !l.More {
		i.holds.End(began)
	}
	if !first.IsZero() {
		took = time.Since(first)
	}
	return l, took, nil
}

// readAll reads the names that start with prefix, and the register of waits.
func (i *inspector) readAll(ctx context.Context, prefix string) (l list, took time.Duration, err error) {
	var infos []zklock.LockInfo
	if l, took, err = i.read(ctx, prefix, maxLimit, func(info zklock.LockInfo) { infos = append(infos, info) }); err != nil {
		return l, took, err
	}
	i.pulse.begin()
	found, unknown := operator.ReadRegister(ctx, i.client, infos)
	i.pulse.end(unanswered(unknown))
	if l.register = found; unknown != nil {
		l.unknown = unknown.Error()
	} else {
		i.pulse.answer()
	}
	return l, took, nil
}

// show returns a queue, or why it is not known.
func (i *inspector) show(info zklock.LockInfo, err error) operator.Lock {
	if err != nil {
		l := operator.Show(info.Name, info.Path, nil, nil)
		l.Error = err.Error()
		return l
	}
	return operator.Show(info.Name, info.Path, info.Contenders, &i.holds)
}

// unanswered returns an error if it says that the ensemble did not answer.
func unanswered(err error) error {
	if errors.Is(err, zklock.ErrUnavailable) {
		return err
	}
	return nil
}

// isRootMissing reports whether an error says that no name is in use, because there is no root.
func isRootMissing(err error) bool { return zklock.Reason(err) == "root_missing" }

// one reads one name.
func (i *inspector) one(ctx context.Context, name string) (l operator.Lock, err error) {
	i.pulse.begin()
	defer func() { i.pulse.end(unanswered(err)) }()
	queue, err := i.client.Contenders(ctx, name)
	if err != nil && !isRootMissing(err) {
		return operator.Lock{}, err
	}
	i.pulse.answer()
	return operator.Show(name, i.client.Mutex(name).Path(), queue, &i.holds), nil
}

// serveList answers api/locks.
func (i *inspector) serveList(w http.ResponseWriter, r *http.Request) {
	limit := defaultLimit
	if text := r.FormValue("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLimit {
			fail(w, http.StatusBadRequest, fmt.Errorf("limit: want a number from 1 to %d", maxLimit))
			return
		}
		limit = n
	}
	l, _, err := i.read(r.Context(), r.FormValue("prefix"), limit, nil)
	answer(w, l, err)
}

// serveName answers api/locks/{name}.
func (i *inspector) serveName(w http.ResponseWriter, r *http.Request, name string) {
	l, err := i.one(r.Context(), name)
	answer(w, l, err)
}

// answer writes a value as JSON, or the error.
func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		fail(w, status(err), err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // an error means that the client has gone
}

// fail answers with an error as JSON.
func fail(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}

// status returns the status of the answer to a request that failed.
func status(err error) int {
	switch {
	case errors.Is(err, zklock.ErrInvalidName):
		return http.StatusBadRequest
	case errors.Is(err, zklock.ErrNoAuth):
		return http.StatusForbidden
	}
	return http.StatusServiceUnavailable
}
