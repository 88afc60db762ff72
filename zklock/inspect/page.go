package inspect

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"time"
)

// page is what the template shows: a list, or one name.
type page struct {
	Prefix string
	Name   string // "" for the list
	Root   string
	List   list
	Lock   lock
	Error  string
	Events string // the URL of the events that the page follows
}

var pageTemplate = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"name":    func(name string) string { return "?" + url.Values{"name": {name}}.Encode() },
	"holders": holders,
	"waiters": func(l lock) int { return len(l.Contenders) - len(holders(l)) },
	"oldest":  oldest,
	"client":  identity,
	"age":     age,
	"number":  func(i int) int { return i + 1 },
	"place":   place,
}).ParseFS(static, "static/page.html"))

// servePage answers with the page. While a page is open that shows the same, it costs no request to
// the ensemble: the answer is the newest state of their feed.
func (i *inspector) servePage(w http.ResponseWriter, r *http.Request) {
	p := page{Name: r.FormValue("name"), Prefix: r.FormValue("prefix")}
	code := http.StatusOK
	s, known := i.feeds.newest(keyOf(p.Name, p.Prefix))
	p.List, p.Lock = s.list, s.lock
	err := s.err
	if p.Name != "" {
		p.Events = "api/events?" + url.Values{"name": {p.Name}}.Encode()
		if !known {
			p.Lock, err = i.one(r.Context(), p.Name)
		}
	} else {
		p.Events = "api/events?" + url.Values{"prefix": {p.Prefix}}.Encode()
		if !known {
			p.List, err = i.read(r.Context(), p.Prefix, defaultLimit)
		}
	}
	if err != nil {
		p.Error, code = err.Error(), status(err)
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		fail(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // an error means that the client has gone
}

// holders returns the contenders that hold a lock.
func holders(l lock) (held []contender) {
	for _, c := range l.Contenders {
		if c.Held {
			held = append(held, c)
		}
	}
	return held
}

// oldest returns since when the oldest waiter of a lock has waited; "" if it has none.
func oldest(l lock) (since string) {
	for _, c := range l.Contenders {
		if !c.Held && c.Since != "" && (since == "" || c.Since < since) {
			since = c.Since
		}
	}
	return since
}

// identity returns the host and the process of a contender.
func identity(c contender) string {
	switch {
	case c.Host != "" && c.PID != 0:
		return fmt.Sprintf("%s/%d", c.Host, c.PID)
	case c.Host != "":
		return c.Host
	case c.PID != 0:
		return fmt.Sprintf("process %d", c.PID)
	case c.Foreign:
		return "another library"
	}
	return "not named"
}

// age returns how long ago a time was, in the form of time.Duration; "" for no time. The
// page's script keeps it up to date.
func age(since string) string {
	t, err := time.Parse(time.RFC3339, since)
	if err != nil {
		return ""
	}
	return max(0, time.Since(t)).Truncate(time.Second).String()
}

// place returns the position in the queue of a node, from 1 on, as the page shows it.
func place(l lock, node string) int {
	for i, c := range l.Contenders {
		if c.Node == node {
			return i + 1
		}
	}
	return 0
}
