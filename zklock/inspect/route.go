package inspect

import (
	"net/http"
	"strings"
)

// route is what a request asks for.
type route int

const (
	toNothing route = iota
	toPage
	toSlash // the page, without the slash at the end of its path
	toList
	toName
	toEvents
	toFile
)

// routeOf returns what a request asks for, with the name or the file as it stands in the path.
//
// The handler may be mounted anywhere, with and without http.StripPrefix. If the router says which
// pattern has matched, as http.ServeMux does, the path below that decides. Of other routers the
// end of the path does: then a path that is neither a file nor part of the API is taken for where
// the handler is mounted.
func routeOf(r *http.Request) (to route, argument string) {
	full := r.URL.EscapedPath()
	if below, ok := belowPattern(r.Pattern, full); ok {
		return relative(below)
	}
	segments := strings.Split(full, "/")
	for n := min(3, len(segments)); n > 0; n-- {
		if to, argument := relative(strings.Join(segments[len(segments)-n:], "/")); to != toNothing && to != toPage {
			return to, argument
		}
	}
	last := segments[len(segments)-1]
	switch {
	case last == "":
		return toPage, ""
	case strings.Contains(last, ".") || strings.Contains(full, "/api/"):
		return toNothing, ""
	}
	return toSlash, ""
}

// relative returns what a path below the handler asks for.
func relative(path string) (to route, argument string) {
	if name, ok := strings.CutPrefix(path, "api/locks/"); ok && name != "" && !strings.Contains(name, "/") {
		return toName, name
	}
	switch path {
	case "":
		return toPage, ""
	case "api/locks":
		return toList, ""
	case "api/events":
		return toEvents, ""
	case "app.js", "style.css":
		return toFile, path
	}
	return toNothing, ""
}

// belowPattern returns the part of a path below the pattern that has matched it. http.StripPrefix
// may have removed the front of the path, and so the same of the pattern. ok is false if the pattern
// does not say where the handler begins.
func belowPattern(pattern, path string) (below string, ok bool) {
	_, pattern, ok = strings.Cut(pattern, "/") // a method and a host may be in front
	if !ok {
		return "", false
	}
	pattern = "/" + pattern
	if at := strings.IndexAny(pattern, "{*"); at >= 0 {
		pattern = pattern[:at]
	}
	if !strings.HasSuffix(pattern, "/") {
		return "", false
	}
	for {
		if below, ok := strings.CutPrefix(path, pattern); ok {
			return below, true
		}
		next := strings.Index(pattern[1:], "/")
		if next < 0 {
			return "", false
		}
		pattern = pattern[next+1:]
	}
}
