package inspect

import (
	"embed"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/zklock/go-zklock/zklock"
)

//go:embed static
var static embed.FS

// policy allows the page's own files and requests, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// inspector serves the page and the API of one client.
type inspector struct {
	client *zklock.Client
	feeds  feeds
}

// Handler returns a handler that shows the locks below the root of a Client. It is safe for
// concurrent use. It panics if c is nil.
func Handler(c *zklock.Client) http.Handler {
	if c == nil {
		panic("inspect: Handler: the Client is nil: want one that Open has made")
	}
	return &inspector{client: c}
}

// ServeHTTP implements http.Handler. It looks at the end of the path only, since the part
// before depends on where the handler is mounted.
func (i *inspector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "this page is read-only: use GET", http.StatusMethodNotAllowed)
		return
	}
	segments := strings.Split(r.URL.EscapedPath(), "/")
	last, above, top := end(segments, 1), end(segments, 2), end(segments, 3)
	switch {
	case above == "api" && last == "locks":
		i.serveList(w, r)
	case above == "api" && last == "events":
		i.serveEvents(w, r)
	case top == "api" && above == "locks":
		name, err := url.PathUnescape(last)
		if err != nil {
			fail(w, http.StatusBadRequest, err)
			return
		}
		i.serveName(w, r, name)
	case last == "app.js" || last == "style.css":
		http.ServeFileFS(w, r, static, "static/"+last)
	case last == "":
		i.servePage(w, r)
	default: // relative links need the slash
		to := url.URL{Path: "./" + path.Base(r.URL.Path) + "/", RawQuery: r.URL.RawQuery}
		h.Set("Location", to.String())
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// end returns the nth segment from the end; "" if there is none.
func end(segments []string, n int) string {
	if n > len(segments) {
		return ""
	}
	return segments[len(segments)-n]
}
