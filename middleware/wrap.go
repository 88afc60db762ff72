package middleware

import (
	"bufio"
	"net"
	"net/http"
)

// beneath is what Unwrap of a writer returns. Through it, http.ResponseController
// finds methods that only an inner writer has. Its Hijack is checked too, so that
// no handler can take over the connection unnoticed.
type beneath writer

// Header implements http.ResponseWriter.
func (b *beneath) Header() http.Header { return (*writer)(b).Header() }

// Write implements http.ResponseWriter.
func (b *beneath) Write(p []byte) (int, error) { return (*writer)(b).Write(p) }

// WriteHeader implements http.ResponseWriter.
func (b *beneath) WriteHeader(code int) { (*writer)(b).WriteHeader(code) }

// Hijack implements http.Hijacker.
func (b *beneath) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w := (*writer)(b)
	if err := w.check(true); err != nil {
		return nil, nil, err
	}
	conn, buf, err := http.NewResponseController(w.inner).Hijack()
	if err == nil {
		w.cut.Hijack(conn)
		w.phase = hijacked
	}
	return conn, buf, err
}

// Unwrap is for http.ResponseController.
func (b *beneath) Unwrap() http.ResponseWriter { return b.inner }

// flushing adds Flush to a writer.
type flushing writer

// Flush implements http.Flusher.
func (f *flushing) Flush() {
	if w := (*writer)(f); w.begin() == nil {
		w.cut.BeginWrite()
		defer w.cut.EndWrite()
		w.inner.(http.Flusher).Flush()
	}
}

// The interfaces that handlers look for by type assertion. A handler relies on an
// interface that it finds, so the writer implements those of the inner writer and
// no others.
const (
	canFlush = 1 << iota
	canHijack
	canPush
	canNotify
)

// wrap returns w with the interfaces that its inner writer has.
func (w *writer) wrap() http.ResponseWriter {
	var can int
	if _, ok := w.inner.(http.Flusher); ok {
		can |= canFlush
	}
	if _, ok := w.inner.(http.Hijacker); ok {
		can |= canHijack
	}
	push, ok := w.inner.(http.Pusher)
	if ok {
		can |= canPush
	}
	//lint:ignore SA1019 deprecated, but gin's Stream still uses it
	notify, ok := w.inner.(http.CloseNotifier)
	if ok {
		can |= canNotify
	}
	flush, hijack := (*flushing)(w), (*beneath)(w)
	switch can {
	case canFlush:
		return struct {
			*writer
			http.Flusher
		}{w, flush}
	case canHijack:
		return struct {
			*writer
			http.Hijacker
		}{w, hijack}
	case canPush:
		return struct {
			*writer
			http.Pusher
		}{w, push}
	case canNotify:
		return struct {
			*writer
			http.CloseNotifier
		}{w, notify}
	case canFlush | canHijack:
		return struct {
			*writer
			http.Flusher
			http.Hijacker
		}{w, flush, hijack}
	case canFlush | canPush:
		return struct {
			*writer
			http.Flusher
			http.Pusher
		}{w, flush, push}
	case canFlush | canNotify:
		return struct {
			*writer
			http.Flusher
			http.CloseNotifier
		}{w, flush, notify}
	case canHijack | canPush:
		return struct {
			*writer
			http.Hijacker
			http.Pusher
		}{w, hijack, push}
	case canHijack | canNotify:
		return struct {
			*writer
			http.Hijacker
			http.CloseNotifier
		}{w, hijack, notify}
	case canPush | canNotify:
		return struct {
			*writer
			http.Pusher
			http.CloseNotifier
		}{w, push, notify}
	case canFlush | canHijack | canPush:
		return struct {
			*writer
			http.Flusher
			http.Hijacker
			http.Pusher
		}{w, flush, hijack, push}
	case canFlush | canHijack | canNotify: // HTTP/1
		return struct {
			*writer
			http.Flusher
			http.Hijacker
			http.CloseNotifier
		}{w, flush, hijack, notify}
	case canFlush | canPush | canNotify: // HTTP/2
		return struct {
			*writer
			http.Flusher
			http.Pusher
			http.CloseNotifier
		}{w, flush, push, notify}
	case canHijack | canPush | canNotify:
		return struct {
			*writer
			http.Hijacker
			http.Pusher
			http.CloseNotifier
		}{w, hijack, push, notify}
	case canFlush | canHijack | canPush | canNotify:
		return struct {
			*writer
			http.Flusher
			http.Hijacker
			http.Pusher
			http.CloseNotifier
		}{w, flush, hijack, push, notify}
	}
	return w
}
