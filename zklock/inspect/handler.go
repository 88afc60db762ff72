package inspect

import (
	"embed"
	"net/http"
	"net/url"
	"path"

	"github.com/zklock/go-zklock/internal/operator"
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
	holds  operator.Holds
	pulse  pulse
}

// Handler returns a handler that shows the locks below the root of a Client. It is safe for
// concurrent use. It panics if c is nil.
func Handler(c *zklock.Client) http.Handler {
	if c == nil {
		panic("inspect: Handler: the Client is nil: want one that Open has made")
	}
	return &inspector{client: c}
}

// ServeHTTP implements http.Handler.
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
	to, argument := routeOf(r)
	if to == toEvents { // a stream is not compressed: each event has to arrive at once
		i.serveEvents(w, r)
		return
	}
	packed := pack(w, r)
	defer packed.Close()
	switch to {
	case toPage:
		i.servePage(packed, r)
	case toList:
		i.serveList(packed, r)
	case toName:
		name, err := url.PathUnescape(argument)
		if err != nil {
			fail(packed, http.StatusBadRequest, err)
			return
		}
		i.serveName(packed, r, name)
	case toFile:
		http.ServeFileFS(packed, r, static, "static/"+argument)
	case toSlash: // relative links need the slash
		u := url.URL{Path: "./" + path.Base(r.URL.Path) + "/", RawQuery: r.URL.RawQuery}
		h.Set("Location", u.String())
		packed.WriteHeader(http.StatusTemporaryRedirect)
	default:
		http.Error(packed, "there is no such page: the locks are at ./, and a name, with %2F for its slashes, at ./api/locks/{name}", http.StatusNotFound)
	}
}
