package cli

import (
	"errors"
	"net/url"
	"strings"

	"github.com/zklock/go-zklock/zklock"
)

// runSession is the session timeout of commands that run others, unless the URL sets one. With
// the library's 10 s an election of a leader among the servers would end commands.
const runSession = "30s"

// address returns the URL of the ensemble.
func (a *app) address() (string, error) {
	for _, text := range []string{a.url, a.getenv(urlEnv)} {
		if text != "" {
			return text, nil
		}
	}
	return "", fail(exitConfiguration, errors.New("there is no URL of an ensemble: set ZKLOCK_URL or --url, such as zk://host:2181/zklock"))
}

// client opens a client with settings that stand for keys that the URL does not have.
func (a *app) client(defaults map[string]string, opts ...zklock.Option) (*zklock.Client, error) {
	text, err := a.address()
	if err != nil {
		return nil, err
	}
	opts = append([]zklock.Option{zklock.WithLogger(a.messages.logger()), zklock.WithParams(missing(text, defaults))}, opts...)
	c, err := a.open(text, opts...)
	if err != nil {
		return nil, fail(exitConfiguration, err)
	}
	return c, nil
}

// missing returns those of the defaults that a URL does not set.
func missing(text string, defaults map[string]string) url.Values {
	params := make(url.Values)
	for name, value := range defaults {
		if _, ok := key(text, name); !ok {
			params.Set(name, value)
		}
	}
	return params
}

// reader opens a client for commands that only read, and for release: they do not create the
// root.
func (a *app) reader(opts ...zklock.Option) (*zklock.Client, error) {
	text, err := a.address()
	if err != nil {
		return nil, err
	}
	opts = append([]zklock.Option{zklock.WithLogger(a.messages.logger()), zklock.WithParams(url.Values{"create_root": {"false"}})}, opts...)
	c, err := a.open(text, opts...)
	if err != nil {
		return nil, fail(exitConfiguration, err)
	}
	return c, nil
}

// key returns the value of a key of a URL. Open reports what is wrong with the URL.
func key(text, key string) (string, bool) {
	_, query, _ := strings.Cut(text, "?")
	params, _ := url.ParseQuery(query)
	return params.Get(key), params.Has(key)
}
