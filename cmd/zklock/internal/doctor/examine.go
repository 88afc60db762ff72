package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// Patient is the ensemble to examine, as a client's URL describes it.
type Patient struct {
	Client         *zklock.Client // with create_root=false
	URL            driver.URL
	Driver         driver.Driver
	SessionTimeout time.Duration // asked for
	TickTime       time.Duration
	PoolSessions   int
	MaxBuffer      int  // jute_maxbuffer of the URL
	CreatesRoot    bool // create_root of the URL
}

const (
	// limit bounds the ping.
	limit = 10 * time.Second

	// serverLimit bounds the wait for a session of one server, and then the questions to it. All
	// servers are examined at the same time.
	serverLimit = 5 * time.Second
)

// Examine examines the servers, the rights on the root, and the queues.
func Examine(ctx context.Context, p Patient) (r Report) {
	defer func() { r.order() }()
	servers, err := look(ctx, p)
	r.reach(p, servers)
	r.session(p, servers)
	r.silence(p, servers)
	r.connections(p, servers)
	r.sizes(p, servers)
	switch {
	case errors.Is(err, errNoneServes):
		r.noQuorum(servers, err.Error())
	case err != nil && !slices.ContainsFunc(servers, func(s server) bool { return !s.misfits() }):
		r.Misfit = true
	case r.quorum(ctx, p, servers, err):
		r.queues(ctx, p.Client, p.room(servers))
	}
	return r
}

// reach reports which servers can be reached, and what their versions mean. A server that waits for another one, which
// is down or leads and commits nothing, is not at fault.
func (r *Report) reach(p Patient, servers []server) {
	acquit(servers)
	var down []string
	for _, s := range servers {
		if s.isDown() && !s.waits() {
			down = append(down, s.host)
		}
	}
	for i, s := range servers {
		switch {
		case s.waits() && len(down) > 0:
			r.warn("server", fmt.Sprintf("%s gives out no session: %s", s.host, s.why()), "see to "+strings.Join(down, " and ")+" first: this server may only lack a leader or a quorum")
		case s.err != nil:
			// A cause that several servers have, such as a certificate or a keytab, is shown once.
			same := func(o server) bool { return o.why() == s.why() && adviceOn(p, o) == adviceOn(p, s) }
			if slices.IndexFunc(servers, same) == i {
				r.toDo("server", allOf(servers, same)+": "+s.why(), adviceOn(p, s))
			}
		case s.srvr[keeperVersion] != "": // with allow_keeper; else it gives out no session
			r.warn("server", fmt.Sprintf("%s is ClickHouse Keeper %s: a lost connection loses all locks, and two clients may hold one lock", s.host, s.srvr[keeperVersion]), "use ZooKeeper")
		case s.srvr["mode"] == "":
			r.ok("server", "%s gives out sessions, %v for one", s.host, s.took.Round(time.Millisecond))
			r.unknown("version", "%s: its version is not known, because it does not answer srvr", s.host)
		default:
			r.ok("server", "%s: %v, %s, %v for a session%s", s.host, s.version, s.srvr["mode"], s.took.Round(time.Millisecond), s.connections())
		}
	}
	seen := make(map[version]bool)
	for _, s := range servers {
		if v := s.version; v != (version{}) && !seen[v] {
			seen[v] = true
			for _, a := range advisories {
				if a.affects(v) {
					r.Findings = append(r.Findings, Finding{Level: Warning, What: "version", Text: fmt.Sprintf("%v: %s: %s", v, a.id, a.text),
						Advice: a.advice, Release: v.String(), Fault: a.id})
				}
			}
			if v.less(version{3, 5, 3}) {
				r.warn("containers", fmt.Sprintf("%v has no container znodes: the znodes of locks stay", v), "upgrade the servers")
			} else {
				r.ok("containers", "%v has container znodes", v)
			}
		}
	}
	if len(seen) > 1 {
		r.warn("version", "the servers have different versions", "finish the upgrade")
	}
}

// session reports whether the servers' settings fit tick_time and session_timeout.
func (r *Report) session(p Patient, servers []server) {
	said := make(map[string]bool)
	once := func(add func(what, text, advice string), what, text, advice string) {
		if !said[text] {
			said[text] = true
			add(what, text, advice)
		}
	}
	checked := false
	for _, s := range servers {
		if s.err != nil {
			continue
		}
		tick, sure := s.tick()
		checked = checked || tick > 0
		switch {
		case tick > p.TickTime && sure:
			once(r.toDo, "tick_time", fmt.Sprintf("the servers' tickTime is %v, and tick_time=%v is less: leases could outlast their sessions", tick, p.TickTime),
				fmt.Sprintf("set tick_time=%v in the URL of all clients", tick))
		case tick > p.TickTime:
			once(r.warn, "tick_time", fmt.Sprintf("the shortest session timeout that the servers grant is %v: unless their minSessionTimeout is set, their tickTime is %v, and tick_time=%v is too small", s.shortest, tick, p.TickTime),
				fmt.Sprintf("compare the servers' tickTime, or allow the command conf in their 4lw.commands.whitelist; if it is %v, set tick_time=%v in the URL of all clients", tick, tick))
		}
		switch {
		case s.granted > p.SessionTimeout:
			once(r.toDo, "session_timeout", fmt.Sprintf("the servers grant %v, and session_timeout=%v asks for less", s.granted, p.SessionTimeout),
				fmt.Sprintf("set session_timeout=%v, or more, in the URL", s.granted))
		case s.granted < 3*p.TickTime:
			once(r.toDo, "session_timeout", fmt.Sprintf("the servers grant %v, and locks need at least three times tick_time=%v", s.granted, p.TickTime),
				"raise the servers' maxSessionTimeout, or set tick_time to the servers' tickTime if that is smaller")
		case s.granted < p.SessionTimeout:
			once(r.warn, "session_timeout", fmt.Sprintf("the servers grant %v, and session_timeout=%v asks for more", s.granted, p.SessionTimeout),
				"raise the servers' maxSessionTimeout, or ask for less")
		default:
			text := fmt.Sprintf("%v, as asked for", s.granted)
			once(func(what, text, _ string) { r.ok(what, "%s", text) }, "session_timeout", text, "")
		}
	}
	if checked && !r.has("tick_time") {
		r.ok("tick_time", "%v is not less than the servers' tickTime", p.TickTime)
	}
}

// has reports whether there is a finding.
func (r *Report) has(what string) bool {
	for _, f := range r.Findings {
		if f.What == what {
			return true
		}
	}
	return false
}

// connections reports how many clients a server admits from one host.
func (r *Report) connections(p Patient, servers []server) {
	said := make(map[int]bool)
	for _, s := range servers {
		if s.err != nil {
			continue
		}
		most, known := s.number("maxClientCnxns")
		if !known {
			most = -1
		}
		if said[most] {
			continue
		}
		said[most] = true
		processes := most / max(p.PoolSessions, 1)
		switch {
		case !known:
			r.unknown("maxClientCnxns", "%s does not say it: allow the command conf in 4lw.commands.whitelist to have it checked", s.host)
		case most == 0:
			r.ok("maxClientCnxns", "no limit")
		case processes < 5:
			r.warn("maxClientCnxns", fmt.Sprintf("%d: only %s of one host, with %s each, can connect to a server", most,
				numbered(processes, "1 process", "%d processes"), numbered(p.PoolSessions, "1 session", "%d sessions")), "raise maxClientCnxns in zoo.cfg")
		default:
			r.ok("maxClientCnxns", "%d: room for %d processes of one host with %s each", most, processes, numbered(p.PoolSessions, "1 session", "%d sessions"))
		}
	}
}

// quorum reports whether a quorum answers, and the rights on the root, by the error of a ping. It reports whether the
// queues can be read.
func (r *Report) quorum(ctx context.Context, p Patient, servers []server, err error) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if answered(err) {
		if up, all := voters(servers); all > 1 && 2*up <= all {
			r.unknown("quorum", "a quorum of the servers answers, and %s of the %d in the URL: they change while doctor looks, or others vote too; run it again", numbered(up, "1 gives out sessions", "%d give out sessions"), all)
		} else {
			r.ok("quorum", "a quorum of the servers answers%s", spare(servers))
		}
	}
	switch {
	case err == nil:
		r.ok("rights", "all that locks need on %s", p.URL.Root)
		return true
	case zklock.Reason(err) == rootMissing:
		r.missingRoot(ctx, p)
		return false
	case zklock.Reason(err) == "session_timeout":
		if !r.hasToDo() {
			r.toDo("session_timeout", err.Error(), "change session_timeout or tick_time in the URL, as the text says")
		}
		return false
	case errors.Is(err, driver.ErrAuthFailed):
		if !r.hasToDo() {
			r.toDo("authentication", err.Error(), authenticate(p.URL))
		}
		return false
	case errors.Is(err, zklock.ErrNoAuth):
		r.toDo("rights", err.Error(), fmt.Sprintf("grant this user the rights on %s, or %s", p.URL.Root, another(p.URL)))
		return true // perhaps the queues can be read
	case errors.Is(err, driver.ErrTLS), errors.Is(err, driver.ErrProtocol):
		if !r.hasToDo() {
			r.toDo("tls", err.Error(), adviceOnMisfit(err))
		}
		return false
	}
	r.noQuorum(servers, err.Error())
	return false
}

// rootMissing is the zklock.Reason of an error that says that there is no root.
const rootMissing = "root_missing"

// spare says how many servers can stop, as far as the URL says which servers there are.
func spare(servers []server) string {
	if len(servers) < 2 {
		return ""
	}
	up, all := voters(servers)
	can := "none can"
	if spare := up - all/2 - 1; spare > 0 {
		can = fmt.Sprintf("%d can", spare)
	}
	return fmt.Sprintf(": %d of the %d in the URL run; if these are all that vote, %s stop", up, all, can)
}

// voters counts the servers that give out sessions, and all, but for observers.
func voters(servers []server) (up, all int) {
	for _, s := range servers {
		if s.srvr["mode"] == "observer" {
			continue
		}
		if all++; s.err == nil {
			up++
		}
	}
	return up, all
}

// noQuorum reports that no quorum answers. A leader has a quorum of followers.
func (r *Report) noQuorum(servers []server, why string) {
	r.NoQuorum = true
	advice := "start enough servers for a quorum, look at their logs and their disks, which may be full, and see that they reach each other"
	for _, s := range servers {
		if errors.Is(s.err, errLeads) {
			advice = adviceOn(Patient{}, s) // said once
		}
	}
	r.toDo("quorum", "no quorum answers: "+why, advice)
}

func (r *Report) hasToDo() bool { return len(r.Advice()) > 0 }
