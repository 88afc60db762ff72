package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/cmd/zklock/internal/doctor"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

func init() { subcommands = append(subcommands, (*app).doctorCommand) }

func (a *app) doctorCommand() *cobra.Command {
	var f format
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine the ensemble: servers, settings, rights, queues",
		Long: `Examine whether an ensemble is ready for locks. doctor looks at

  - every server of the URL: whether it gives out sessions, its version, known faults of that
    version that concern locks, support of container znodes, maxClientCnxns
  - the servers' tickTime and the session timeout that they grant, against tick_time and
    session_timeout of the URL
  - the quorum, and the rights on the root
  - the queues: contenders that belong to no session, those of other libraries, sequence numbers,
    clocks

It ends with "ok", or with what to do. Exit codes: 0 if it is ok, perhaps with warnings; 1 if
there is something to do; 69 without a quorum. It changes nothing.

Servers answer more questions if their 4lw.commands.whitelist has srvr and conf.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.patient()
			if err != nil {
				return err
			}
			defer p.Client.Close()
			report := doctor.Examine(cmd.Context(), p)
			out := bufio.NewWriter(a.out)
			if f == formatJSON {
				err = writeJSON(out, report)
			} else {
				err = writeReport(out, report)
			}
			if err := written(err, out.Flush()); err != nil {
				return err
			}
			switch {
			case report.NoQuorum:
				return exit(exitUnreachable)
			case len(report.Advice()) > 0:
				return exit(exitToDo)
			}
			return nil
		},
	}
	f.addTo(cmd, formatTable, formatJSON)
	return cmd
}

// patient returns the ensemble of the URL. What package zklock has parsed of the URL comes from
// a driver that does nothing else than take it.
func (a *app) patient() (doctor.Patient, error) {
	text, err := a.address()
	if err != nil {
		return doctor.Patient{}, err
	}
	c, err := a.reader(zklock.WithLogger(nil)) // the report has it all
	if err != nil {
		return doctor.Patient{}, err
	}
	p := doctor.Patient{Client: c, Driver: zkdriver.Driver{}, SessionTimeout: 10 * time.Second, TickTime: 3 * time.Second, PoolSessions: 2}
	const prefix = "doctor+"
	for _, scheme := range []string{"zk", "zks"} {
		zklock.Register(prefix+scheme, taker(func(u driver.URL) {
			u.Scheme = scheme
			p.URL = u
		}))
	}
	if _, err := zklock.Open(prefix + text); !errors.Is(err, errTaken) {
		c.Close()
		return doctor.Patient{}, fail(exitConfiguration, err)
	}
	for name, d := range map[string]*time.Duration{"session_timeout": &p.SessionTimeout, "tick_time": &p.TickTime} {
		if value, ok := key(text, name); ok {
			*d, _ = time.ParseDuration(value) // Open has checked it
		}
	}
	if value, ok := key(text, "pool_max_sessions"); ok {
		p.PoolSessions, _ = strconv.Atoi(value)
	}
	return p, nil
}

// taker is a driver that takes a URL.
type taker func(driver.URL)

// errTaken is the error of a taker.
var errTaken = errors.New("the URL was taken")

// OpenConnector implements driver.Driver.
func (t taker) OpenConnector(u driver.URL) (driver.Connector, error) {
	t(u)
	return nil, errTaken
}

// Keys implements driver.Driver.
func (taker) Keys() []string { return zkdriver.Driver{}.Keys() }

// writeReport writes a report as text. It ends with "ok", or with what to do.
func writeReport(w io.Writer, report doctor.Report) error {
	t := newTable(w)
	t.title = []string{"RESULT", "WHAT", "FOUND"}
	for _, f := range report.Findings {
		if err := t.row(string(f.Level), f.What, escape(f.Text)); err != nil {
			return err
		}
		if f.Level == doctor.Warning {
			if err := t.row("", "", "  advice: "+escape(f.Advice)); err != nil {
				return err
			}
		}
	}
	if err := t.end(); err != nil {
		return err
	}
	advice := report.Advice()
	if len(advice) == 0 {
		_, err := fmt.Fprintln(w, "\nok")
		return err
	}
	if _, err := fmt.Fprintln(w, "\nto do:"); err != nil {
		return err
	}
	for i, text := range advice {
		if _, err := fmt.Fprintf(w, "%d. %s\n", i+1, escape(text)); err != nil {
			return err
		}
	}
	return nil
}
