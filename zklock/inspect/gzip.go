package inspect

import (
	"compress/gzip"
	"net/http"
	"strings"
)

// packed is an answer that is compressed if the client accepts that.
type packed struct {
	http.ResponseWriter
	zip   *gzip.Writer // nil until the first byte, and if the answer is not compressed
	plain bool
}

// pack returns a writer for an answer. The caller closes it.
func pack(w http.ResponseWriter, r *http.Request) *packed {
	w.Header().Set("Vary", "Accept-Encoding")
	accepts := false
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if strings.EqualFold(name, "gzip") {
			accepts = strings.Trim(strings.TrimPrefix(strings.TrimSpace(weight), "q="), "0.") != "" || weight == ""
		}
	}
	return &packed{ResponseWriter: w, plain: !accepts || r.Method == http.MethodHead || r.Header.Get("Range") != ""}
}

// WriteHeader implements http.ResponseWriter.
func (p *packed) WriteHeader(code int) {
	if code == http.StatusTemporaryRedirect || code == http.StatusNotModified {
		p.plain = true // there is no body
	}
	if !p.plain {
		p.Header().Del("Content-Length")
		p.Header().Set("Content-Encoding", "gzip")
	}
	p.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (p *packed) Write(b []byte) (int, error) {
	if p.plain {
		return p.ResponseWriter.Write(b)
	}
	if p.zip == nil {
		if p.Header().Get("Content-Encoding") == "" {
			p.WriteHeader(http.StatusOK)
		}
		p.zip = gzip.NewWriter(p.ResponseWriter)
	}
	return p.zip.Write(b)
}

// Close ends the answer.
func (p *packed) Close() {
	if p.zip != nil {
		_ = p.zip.Close() // an error means that the client has gone
	}
}
