//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
)

// observe prints the leaders of an election until INT or TERM.
func (a *app) observe(ctx context.Context, name string, f format) error {
	if err := zklock.CheckName(name); err != nil {
		return fail(exitUsage, fmt.Errorf("%q: %w", name, err))
	}
	c, err := a.reader()
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	w := leaderWriter{w: a.out, f: f, name: name}
	return follow(ctx, election.New(c, name).Observe(ctx), election.ErrNoLeader, func(l election.Leader, err error) error {
		switch {
		case err == nil:
			return w.leads(l, time.Now())
		case errors.Is(err, election.ErrNoLeader):
			return w.without("none", nil, time.Now())
		}
		return w.without("unknown", err, time.Now())
	})
}

// leaderWriter writes the leaders of one election.
type leaderWriter struct {
	w       io.Writer
	f       format
	name    string
	unknown bool // the last line says that the leader is not known
}

// stateJSON is a state of an election as JSON.
type stateJSON struct {
	Time   string      `json:"time"`
	Event  string      `json:"event"` // leads, none or unknown
	Name   string      `json:"name"`
	Leader *leaderJSON `json:"leader,omitempty"`
	Reason string      `json:"reason,omitempty"` // of unknown
}

// leaderJSON is a leader as JSON.
type leaderJSON struct {
	Value string          `json:"value"`
	Host  string          `json:"host"`
	PID   int             `json:"pid"`
	Token string          `json:"token"`
	Node  string          `json:"node"` // without its zxid
	Since operator.Millis `json:"since"`
}

// leads writes that a candidate leads.
func (w *leaderWriter) leads(l election.Leader, now time.Time) error {
	w.unknown = false
	if w.f == formatJSON {
		return writeJSON(w.w, stateJSON{Time: rfc3339(now), Event: "leads", Name: w.name, Leader: &leaderJSON{
			Value: l.Value, Host: l.Host, PID: l.PID, Token: l.Token.String(), Node: l.Node, Since: operator.MillisOf(l.Since),
		}})
	}
	process := "?"
	if l.Host != "" {
		process = operator.Escape(l.Host) + "/" + strconv.Itoa(l.PID)
	}
	_, err := fmt.Fprintf(w.w, "%s  leads    %s  %s  %v\n", now.Format(clock), process, dash(l.Value), l.Token)
	return err
}

// without writes that no candidate leads, or, once in an outage, that the leader is not known.
func (w *leaderWriter) without(event string, why error, now time.Time) error {
	if why != nil && w.unknown {
		return nil
	}
	w.unknown = why != nil
	reason := ""
	if why != nil {
		reason = why.Error()
	}
	if w.f == formatJSON {
		return writeJSON(w.w, stateJSON{Time: rfc3339(now), Event: event, Name: w.name, Reason: reason})
	}
	line := fmt.Sprintf("%s  %-7s", now.Format(clock), event)
	if reason != "" {
		line += "  " + operator.Escape(reason)
	}
	_, err := io.WriteString(w.w, line+"\n")
	return err
}
