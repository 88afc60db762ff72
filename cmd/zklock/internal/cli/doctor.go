package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/cmd/zklock/internal/doctor"
	"github.com/zklock/go-zklock/internal/operator"
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
  - whether a server that falls silent costs locks: how long leases last, against the servers'
    syncLimit
  - the quorum, and the rights on the root
  - the queues: contenders that belong to no session, those of other libraries, sequence numbers,
    clocks

What is wrong now comes first, and the known faults of the servers' release last, in one line; with
-o wide, each has a line of its own. doctor ends with "ok", or with what to do. What doctor
cannot find out is "unknown", not "ok". Exit codes: 0 if it is ok, perhaps with warnings; 1 if there is
something to do; 69 without a quorum; 78 if the URL's scheme, port or TLS fits no server. It changes
nothing.

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
				err = writeReport(out, report, f == formatWide)
			}
			if err := written(err, out.Flush()); err != nil {
				return err
			}
			switch {
			case report.Misfit:
				return exit(exitConfiguration)
			case report.NoQuorum:
				return exit(exitUnreachable)
			case len(report.Advice()) > 0:
				return exit(exitToDo)
			}
			return nil
		},
	}
	f.addTo(cmd, formatTable, formatWide, formatJSON)
	return cmd
}

// patient returns the ensemble of the URL.
func (a *app) patient() (doctor.Patient, error) {
	cfg, err := a.config()
	if err != nil {
		return doctor.Patient{}, err
	}
	if cfg.Scheme != "zk" && cfg.Scheme != "zks" {
		return doctor.Patient{}, fail(exitConfiguration, fmt.Errorf("doctor examines servers, and %s:// has none: use a URL of zk:// or zks://", cfg.Scheme))
	}
	c, err := a.reader(zklock.WithLogger(nil)) // the report has it all
	if err != nil {
		return doctor.Patient{}, err
	}
	u := driver.URL{Scheme: cfg.Scheme, User: cfg.User, Password: cfg.Password, Hosts: cfg.Hosts, Root: cmp.Or(cfg.Root, "/zklock"), Params: make(url.Values)}
	for key, value := range cfg.DriverSettings {
		u.Params.Set(key, value)
	}
	return doctor.Patient{
		Client: c, Driver: zkdriver.Driver{}, URL: u,
		SessionTimeout: cmp.Or(cfg.SessionTimeout, runSession),
		TickTime:       cmp.Or(cfg.TickTime, 3*time.Second),
		PoolSessions:   cmp.Or(cfg.PoolMaxSessions, 2),
		MaxBuffer:      cmp.Or(cfg.JuteMaxbuffer, 1<<20-1),
		CreatesRoot:    !cfg.RequireRoot,
	}, nil
}

// writeReport writes a report as text. It ends with "ok", or with what to do.
func writeReport(w io.Writer, report doctor.Report, wide bool) error {
	t := newTable(w)
	t.title = []string{"RESULT", "WHAT", "FOUND"}
	findings := report.Findings
	if !wide {
		findings = report.Short()
	}
	for _, f := range findings {
		if err := t.row(string(f.Level), f.What, operator.Printable(f.Text)); err != nil {
			return err
		}
		if f.Level == doctor.Warning {
			if err := t.row("", "", "  advice: "+operator.Printable(f.Advice)); err != nil {
				return err
			}
		}
	}
	if err := t.end(); err != nil {
		return err
	}
	advice := report.Advice()
	if len(advice) == 0 {
		end := "\nok"
		if slices.ContainsFunc(report.Findings, func(f doctor.Finding) bool { return f.Level == doctor.Unknown }) {
			end += ", but for what is unknown"
		}
		_, err := fmt.Fprintln(w, end)
		return err
	}
	if _, err := fmt.Fprintln(w, "\nto do:"); err != nil {
		return err
	}
	for i, text := range advice {
		if _, err := fmt.Fprintf(w, "%d. %s\n", i+1, operator.Printable(text)); err != nil {
			return err
		}
	}
	return nil
}
