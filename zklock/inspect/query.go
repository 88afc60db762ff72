package inspect

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
)

// query is what a reader asks the page for. At most one of name, and host or session, is set.
type query struct {
	Name    string // the queue of a name
	Host    string // everything that this host, or its process PID, holds and waits for
	PID     int
	Session string // everything that this session holds and waits for
	Prefix  string // only names that start with it are read
	Filter  string // only names that contain it are shown
	Sort    string // one of sorts
	Page    int    // from 1 on
	Rows    int    // of a page
}

// The rows of a page: few answer what is stuck, and many show the rest.
const (
	fewRows  = 20
	manyRows = 1000
)

// queryOf returns the query of a request. A value that makes no sense has the default.
func queryOf(r *http.Request) query {
	number := func(key string, least, most, otherwise int) int {
		if n, err := strconv.Atoi(r.FormValue(key)); err == nil && n >= least && n <= most {
			return n
		}
		return otherwise
	}
	q := query{Name: r.FormValue("name"), Host: r.FormValue("host"), Session: r.FormValue("session"), Prefix: r.FormValue("prefix"),
		Filter: r.FormValue("q"), Sort: r.FormValue("sort"), PID: number("pid", 1, 1<<31-1, 0),
		Page: number("page", 1, maxLimit, 1), Rows: number("rows", 1, manyRows, fewRows)}
	if _, ok := sorts[q.Sort]; !ok {
		q.Sort = "wait"
	}
	return q
}

// view returns what the page follows.
func (q query) view() view {
	switch {
	case q.Name != "":
		return view{name: q.Name}
	case q.Process():
		return view{}
	}
	return view{prefix: q.Prefix}
}

// Process reports whether the page is about one host, process or session.
func (q query) Process() bool { return q.Name == "" && (q.Host != "" || q.Session != "") }

// shows reports whether a page about a process shows a contender.
func (q query) shows(c operator.Contender) bool {
	if q.Session != "" {
		return c.Session == q.Session
	}
	return c.Host == q.Host && (q.PID == 0 || c.PID == q.PID)
}

// involves reports whether a page of a process, or a list, shows the deadlock that a wait is in. The page of a
// session does not: it is not known of which session a wait is.
func (q query) involves(l zklock.DeadlockLink) bool {
	if q.Process() {
		return q.shows(operator.Contender{Host: l.Host, PID: l.PID})
	}
	return strings.HasPrefix(l.Held, q.Prefix) && contains(l.Held, q.Filter)
}

// contains reports whether a name has a filter in it.
func contains(name, filter string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(filter))
}

// Subject returns how the page calls the process that it is about.
func (q query) Subject() string {
	if q.Session != "" {
		return "session " + q.Session
	}
	return operator.Contender{Host: q.Host, PID: q.PID}.Process()
}

// Events returns the URL of the events that the page follows.
func (q query) Events() string {
	v := q.view()
	if v.name != "" {
		return "api/events?" + url.Values{"name": {v.name}}.Encode()
	}
	return "api/events?" + url.Values{"prefix": {v.prefix}}.Encode()
}

// SortedBy returns the link to the list in another order.
func (q query) SortedBy(by string) string { q.Sort, q.Page = by, 1; return q.link() }

// At returns the link to another page of the list, with so many rows.
func (q query) At(page, rows int) string { q.Page, q.Rows = page, rows; return q.link() }

// link returns the link to a list.
func (q query) link() string {
	v := make(url.Values)
	set := func(key, value, otherwise string) {
		if value != otherwise {
			v.Set(key, value)
		}
	}
	set("prefix", q.Prefix, "")
	set("q", q.Filter, "")
	set("sort", q.Sort, "wait")
	set("page", strconv.Itoa(q.Page), "1")
	set("rows", strconv.Itoa(q.Rows), strconv.Itoa(fewRows))
	if len(v) == 0 {
		return "./"
	}
	return "?" + v.Encode()
}
