package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/zklock/inspect"
)

func init() { subcommands = append(subcommands, (*app).pageCommand) }

func (a *app) pageCommand() *cobra.Command {
	var listen string
	var hosts []string
	cmd := &cobra.Command{
		Use:   "page",
		Short: "Serve a web page with the locks",
		Long: `Serve a web page with the names in use, their holders and waiters, and a JSON API, until INT or TERM.
It is read-only. There is no password: by default only this machine can reach it. Requests whose
Host header names neither this machine nor one of --host are refused, so that a web page
elsewhere cannot read it through a browser.`,
		Example: "  zklock page\n  ssh -L 7070:127.0.0.1:7070 server zklock page",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return a.page(ctx, listen, hosts)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:7070", "the address, host:port; port 0 is a free one")
	cmd.Flags().StringSliceVar(&hosts, "host", nil, "another name that browsers may reach the page by")
	return cmd
}

// page serves the page until ctx ends.
func (a *app) page(ctx context.Context, listen string, hosts []string) error {
	host, _, err := net.SplitHostPort(listen)
	if strings.Contains(listen, "@") { // a URL, perhaps without its scheme: errors would show the password
		err = errors.New("want host:port, such as 127.0.0.1:7070")
	}
	if err != nil {
		return usage(fmt.Sprintf("--listen: %v", err))
	}
	c, err := a.reader()
	if err != nil {
		return err
	}
	defer c.Close()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fail(exitFailure, err)
	}
	loopback := listener.Addr().(*net.TCPAddr).IP.IsLoopback()
	if !loopback {
		a.messages.printf("the page has no password, and other machines can reach %s: names, hosts and labels are open to them", listener.Addr())
		if name, err := os.Hostname(); err == nil {
			hosts = append(hosts, name)
		}
	}
	mux := http.NewServeMux() // so that the handler knows which paths are its own
	mux.Handle("/", inspect.Handler(c))
	server := &http.Server{
		Handler:           refuseForeign(mux, loopback, append(hosts, host)),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // ends the streams of events
	}
	a.messages.printf("serving http://%s/", listener.Addr())
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fail(exitFailure, err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		_ = server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fail(exitFailure, err)
	}
	return nil
}

// refuseForeign refuses requests with the Host header of another site. A site can make its name
// resolve to this machine's address, and its script could read the page then. It cannot do so
// with an address in place of a name.
func refuseForeign(next http.Handler, loopback bool, names []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isForeign(r.Host, loopback, names) {
			http.Error(w, "this name is not one of this page: use its address, or start zklock page with --host", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isForeign reports whether a Host header names neither this machine nor one of the names.
func isForeign(header string, loopback bool, names []string) bool {
	host := header
	if h, _, err := net.SplitHostPort(header); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if ip := net.ParseIP(host); ip != nil {
		return loopback && !ip.IsLoopback()
	}
	if strings.EqualFold(host, "localhost") {
		return false
	}
	return host == "" || !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, host) })
}
