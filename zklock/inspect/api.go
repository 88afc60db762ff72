package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/zklock/go-zklock/internal/blocking"
	"github.com/zklock/go-zklock/zklock"
)

// list is the answer of api/locks.
type list struct {
	Locks []lock `json:"locks"`
	More  bool   `json:"more"`
}

// lock is a name with its queue.
type lock struct {
	Name       string      `json:"name"`
	Path       string      `json:"path"`
	Error      string      `json:"error,omitempty"` // why the queue is not known
	Contenders []contender `json:"contenders"`
}

// contender is a contender as the API shows it.
type contender struct {
	Node    string   `json:"node"`
	Host    string   `json:"host"`
	PID     int      `json:"pid"`
	Label   string   `json:"label"`
	Trace   string   `json:"trace"`
	Mode    string   `json:"mode"`
	Held    bool     `json:"held"`
	Foreign bool     `json:"foreign"`
	Kept    bool     `json:"kept"`
	Revoked string   `json:"revoked"`
	Since   string   `json:"since"` // "" if it is not known
	Session string   `json:"session"`
	Zxid    string   `json:"zxid"`
	Waits   []string `json:"waits_for"` // the nodes whose departure or grant it waits for
}

// Limits of a list.
const (
	defaultLimit = 1000
	maxLimit     = 100_000
)

// read reads the names that start with prefix, limit of them at most.
func (i *inspector) read(ctx context.Context, prefix string, limit int) (list, error) {
	l := list{Locks: []lock{}}
	for info, err := range i.client.Locks(ctx, prefix) {
		if err != nil && info.Name == "" {
			return list{}, err
		}
		if len(l.Locks) == limit {
			l.More = true
			break
		}
		found := shown(info.Name, info.Path, info.Contenders)
		if err != nil {
			found.Error = err.Error()
		}
		l.Locks = append(l.Locks, found)
	}
	return l, nil
}

// isRootMissing reports whether an error says that no name is in use, because there is no root.
func isRootMissing(err error) bool { return errors.Is(err, zklock.ErrRootMissing) }

// one reads one name.
func (i *inspector) one(ctx context.Context, name string) (lock, error) {
	queue, err := i.client.Contenders(ctx, name)
	if err != nil && !isRootMissing(err) {
		return lock{}, err
	}
	return shown(name, i.client.Mutex(name).Path(), queue), nil
}

// shown returns a queue as the API shows it.
func shown(name, path string, queue []zklock.Contender) lock {
	l := lock{Name: name, Path: path, Contenders: make([]contender, len(queue))}
	for n, c := range queue {
		s := contender{Node: c.Node, Host: c.Host, PID: c.PID, Label: c.Label, Trace: c.Trace, Mode: c.Mode.String(), Held: c.Held,
			Foreign: c.Foreign, Kept: c.Kept, Revoked: c.Revoked, Session: hex(c.Session), Zxid: hex(c.Zxid), Waits: waits(queue, n)}
		if !c.Since.IsZero() {
			s.Since = c.Since.UTC().Format(time.RFC3339)
		}
		l.Contenders[n] = s
	}
	return l
}

func hex(id int64) string { return fmt.Sprintf("%#x", uint64(id)) }

// waits returns the nodes that a contender waits for.
func waits(queue []zklock.Contender, self int) []string {
	nodes := []string{}
	for _, n := range blocking.Of(queue, self) {
		nodes = append(nodes, queue[n].Node)
	}
	return nodes
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
	l, err := i.read(r.Context(), r.FormValue("prefix"), limit)
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
