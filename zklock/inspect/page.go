package inspect

import (
	"bytes"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/operator"
)

// page is what the templates show.
type page struct {
	Query  query
	Lock   operator.Lock     // of the page of a name
	Here   int               // likewise: acquisitions of this process that wait
	Client string            // whose locks these are: see zklock.Client.String
	Own    string            // what this client does, or why it acquires nothing
	Fails  bool              // it acquires nothing
	Tree   []operator.Branch // what holds up; of lists, the deadlocks
	Doubt  string            // why deadlocks are not known
	Total  total
	Rows   []row
	Found  int    // rows of all pages
	Parts  []part // of the page of a process
	Holds  int    // of Parts, without those that it leads
	Leads  int    // of Parts
	Stands int    // of Parts: it is a candidate
	Behind int    // of Parts
	More   bool
	At     time.Time // when the ensemble gave what is shown
	Silent int64     // since when it does not answer, as in the events
	Left   departure // the newest one from a silent server
	Error  string
	Blank  bool // the Error is all that is known
}

// servePage answers with the page, in HTML or, with ?format=text, as text. While a page is open that
// shows the same, it costs no request to the ensemble: the answer is the newest state of their feed.
func (i *inspector) servePage(w http.ResponseWriter, r *http.Request) {
	q := queryOf(r)
	s, known := i.feeds.newest(q.view())
	if !known {
		if s = i.load(r.Context(), q.view()); s.err == nil {
			i.feeds.keep(q.view(), s)
		}
	}
	p := pageOf(q, s)
	p.Silent, p.Client, p.Left = i.silent(), i.client.String(), departure{i.client.Stats().Departure}
	p.Own, p.Fails = i.own()
	code := http.StatusOK
	if s.err != nil {
		p.Error, p.Blank, code = s.err.Error(), s.blank(), status(s.err)
	}
	var b bytes.Buffer
	kind := "text/html; charset=utf-8"
	if r.FormValue("format") == "text" {
		kind = "text/plain; charset=utf-8"
		p.writeText(&b)
	} else if err := pageTemplate().Execute(&b, p); err != nil {
		fail(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // an error means that the client has gone
}

// pageOf returns the page for a query.
func pageOf(q query, s state) page {
	p := page{Query: q, At: s.at, More: s.list.More, Doubt: s.list.unknown}
	switch {
	case q.Name != "":
		p.Lock, p.Here = s.lock, s.here[q.Name]
		p.Tree = operator.Tree(s.lock, s.list.Locks, s.list.register)
	case q.Process():
		var waiting []operator.Lock
		p.Parts, waiting = partsOf(s, q)
		p.Tree = operator.Above(waiting, s.list.Locks, s.list.register, q.involves)
		for _, part := range p.Parts {
			switch {
			case part.Role() == "leader":
				p.Leads++
			case part.Candidacy:
				p.Stands++
			case part.Held:
				p.Holds++
			}
			p.Behind += part.Behind
		}
	default:
		p.Total = totalOf(s)
		p.Tree = operator.Circles(operator.Within(s.list.register.Dead, q.involves))
		rows := rowsOf(s, q.Filter, q.Sort)
		p.Found = len(rows)
		q.Page = min(q.Page, max(1, pages(q.Rows, p.Found))) // names have gone since the link was made
		p.Query = q
		from := min((q.Page-1)*q.Rows, p.Found)
		p.Rows = rows[from:min(from+q.Rows, p.Found)]
	}
	return p
}

// From and To return the positions of the first and the last row among those found, from 1 on.
func (p page) From() int { return min((p.Query.Page-1)*p.Query.Rows, p.Found) + 1 }
func (p page) To() int   { return p.From() + len(p.Rows) - 1 }

// One returns the ending of a verb whose subject is the names that were found.
func (p page) One() string {
	if p.Found == 1 {
		return "s"
	}
	return ""
}

// Waits returns how many of Parts wait, without those that are candidates.
func (p page) Waits() int { return len(p.Parts) - p.Holds - p.Leads - p.Stands }

// Does returns what the process of the page holds and waits for.
func (p page) Does() string {
	text := "holds " + thousands(p.Holds) + " and waits for " + thousands(p.Waits())
	if p.Leads > 0 {
		text += ", leads " + thousands(p.Leads)
	}
	if p.Stands > 0 {
		text += ", is a candidate for " + thousands(p.Stands)
	}
	return text + "; waiting for what it holds: " + thousands(p.Behind)
}

// pageTemplate is parsed for the first page: the command zklock imports this package, and starts three times for each run.
var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page.html").Funcs(template.FuncMap{
		"name":       func(name string) string { return link("name", name) },
		"host":       func(c operator.Contender) string { return link("host", c.Host) },
		"process":    func(c operator.Contender) string { return link("host", c.Host, "pid", strconv.Itoa(c.PID)) },
		"session":    func(c operator.Contender) string { return link("session", c.Session) },
		"age":        func(m operator.Millis) string { return m.Age(time.Now(), false) },
		"clock":      func(t time.Time) string { return t.Format("15:04:05 MST") },
		"text":       operator.Escape,
		"breakable":  breakable,
		"revocation": operator.Revocation,
		"place":      place,
		"blockers":   blockers,
		"add":        func(a, b int) int { return a + b },
		"count":      thousands,
		"pages":      pages,
		"manyRows":   func() int { return manyRows },
		"fewRows":    func() int { return fewRows },
		"many":       many,
		"sorts": func() []struct{ By, Title string } {
			return []struct{ By, Title string }{{"name", "Name"}, {"", "Held by"}, {"age", "Held"}, {"waiters", "Waiting processes"}, {"wait", "Longest wait"}}
		},
		"named": func(name string, c operator.Contender) part { return part{Name: name, Contender: c} },
	}).ParseFS(static, "static/page.html"))
})

// pages returns how many pages the rows found fill.
func pages(rows, found int) int { return (found + rows - 1) / rows }

// link returns a link to another page: keys and values in turn.
func link(pairs ...string) string {
	v := make(url.Values)
	for pair := range slices.Chunk(pairs, 2) {
		v.Set(pair[0], pair[1])
	}
	return "?" + v.Encode()
}

// breakable returns a text, escaped as on a terminal, that a browser breaks after its separators, and not within words.
func breakable(text string) template.HTML {
	var b strings.Builder
	rest := operator.Escape(text)
	for rest != "" {
		n := strings.IndexAny(rest, "/-_.:@ ") + 1
		if n == 0 {
			n = len(rest)
		}
		b.WriteString(template.HTMLEscapeString(rest[:n]))
		if rest = rest[n:]; rest != "" {
			b.WriteString("<wbr>")
		}
	}
	return template.HTML(b.String())
}

// thousands returns a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// many returns a number of things.
func many(n int, thing string) string {
	return strings.Replace(operator.Count(n, thing), strconv.Itoa(n), thousands(n), 1)
}

// place returns the position in the queue of a node, from 1 on, as the page shows it.
func place(l operator.Lock, node string) int {
	return 1 + slices.IndexFunc(l.Contenders, func(c operator.Contender) bool { return c.Node == node })
}

// shownBlockers is how many nodes the page names that a contender waits for.
const shownBlockers = 3

// blockers returns the nodes that a contender waits for, as far as the page names them.
func blockers(c operator.Contender) []string { return c.Waits[:min(len(c.Waits), shownBlockers)] }
