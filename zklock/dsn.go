package zklock

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/zklock/go-zklock/internal/sessiondir"
	"github.com/zklock/go-zklock/zklock/driver"
)

// ParseURL returns the settings of a URL, as [Open] reads it: a program can look at them, change
// them, and pass them to [OpenConfig]. Settings that the URL does not have keep their zero values,
// which stand for the defaults. The driver of the URL's scheme has to be imported, since it
// knows its keys. No error contains the URL's password.
func ParseURL(url string) (cfg Config, err error) {
	defer annotate(&err, "parse", "")
	return parseConfig(url)
}

func parseConfig(text string) (Config, error) {
	u, err := parseURL(text)
	if err != nil {
		return Config{}, err
	}
	d, err := lookupDriver(u.Scheme)
	if err != nil {
		return Config{}, err
	}
	cfg := Config{Scheme: u.Scheme, Hosts: u.Hosts, User: u.User, Password: u.Password, Root: u.Root}
	if err := cfg.setParams(u.Params, d.Keys()); err != nil {
		return Config{}, err
	}
	return cfg, nil
}

// connect makes the connector that the fields for the driver describe. They may come from
// elsewhere than a URL, so it checks what parseURL would have checked.
func (c *Config) connect(cl *Client) (driver.Connector, error) {
	if c.Scheme == "" {
		return nil, errors.New("the Config has neither a Scheme nor a Connector: start from ParseURL, or set one of them")
	}
	d, err := lookupDriver(c.Scheme)
	if err != nil {
		return nil, err
	}
	u := driver.URL{Scheme: c.Scheme, User: c.User, Password: c.Password, Root: cl.cfg.Place.Root, Logger: cl.cfg.Place.Log(), Options: cl.cfg.driverOptions, Params: make(url.Values)}
	if err := checkUser(c.User, c.Password); err != nil {
		return nil, err
	}
	if err := parseHosts(&u, strings.Join(c.Hosts, ",")); err != nil {
		return nil, err
	}
	if err := c.checkDriverSettings(d.Keys()); err != nil {
		return nil, err
	}
	for name, value := range c.DriverSettings {
		u.Params.Set(name, value)
	}
	connector, err := d.OpenConnector(u)
	if err != nil {
		return nil, err
	}
	reaped := func() { cl.counters.reaped.Add(1) }
	return sessiondir.Open(connector, sessiondir.Settings{Path: c.SessionDir, URL: u, LossDelay: c.LossDelay, Log: cl.cfg.Place.Log, Reaped: reaped})
}

// parseURL parses a connection URL:
//
//	scheme://[user[:password]@]host[:port][,host[:port]...][/root][?key=value[&key=value...]]
//
// It does not use net/url, because RFC 3986 does not allow several hosts in an
// authority, and net/url rejects some such URLs. Errors repeat nothing of the text
// before the root, except names of hosts: it may contain a password, even if the URL is
// malformed in a way that does not show where.
func parseURL(text string) (driver.URL, error) {
	var u driver.URL
	switch {
	case text == "":
		return u, errors.New("the URL is empty: want something like zk://host:2181/root")
	case strings.TrimSpace(text) != text:
		return u, errors.New("the URL begins or ends with a space or a line break: remove it")
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if before, _, one := strings.Cut(text, ":/"); !ok && one && schemeForm.MatchString(before) {
		return u, errors.New("URL has one slash after its scheme: want two, as in zk://host:2181/root")
	}
	switch {
	case !ok || scheme == "":
		return u, errors.New(`URL has no scheme: want something like zk://host:2181/root`)
	case !schemeForm.MatchString(scheme) && schemeForm.MatchString(strings.ToLower(scheme)):
		return u, errors.New("URL scheme has a capital letter: write it in lower case, as in zk://host:2181/root")
	case !schemeForm.MatchString(scheme):
		return u, errors.New("URL scheme has a character other than a-z, 0-9, +, - and dot: want something like zk://host:2181/root")
	}
	u.Scheme = scheme
	if strings.Contains(rest, "#") {
		return u, errors.New("URL has a fragment (#...): write # in a user or password as %23")
	}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.Contains(query, "@") {
		return u, errors.New("URL has an @ after the first ?: write ? in a user or password as %3F, and @ in a value as %40")
	}
	params, err := url.ParseQuery(query)
	if err != nil {
		return u, errors.New("URL query is malformed: want key=value pairs joined by &, with special characters as %XX")
	}
	u.Params = params

	// A password may contain an "@", and a root in a URL cannot, so the last "@" ends the
	// credentials.
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := parseCredentials(&u, rest[:at]); err != nil {
			return u, err
		}
		rest = rest[at+1:]
	}
	if strings.Contains(rest, "://") {
		return u, errors.New("URL has a second ://: the scheme is given once, before the first host, as in zk://a:2181,b:2181/root")
	}
	authority, root, hasRoot := strings.Cut(rest, "/")
	if hasRoot && root != "" {
		if err := checkRootInURL(root); err != nil {
			return u, err
		}
		u.Root = "/" + strings.TrimSuffix(root, "/")
	}
	if strings.ContainsFunc(authority, unicode.IsSpace) {
		return u, errors.New("URL has a space in its list of hosts: hosts are joined by commas alone, as in a:2181,b:2181")
	}
	err = parseHosts(&u, authority)
	return u, err
}

func parseHosts(u *driver.URL, text string) error {
	if text == "" {
		return nil
	}
	for host := range strings.SplitSeq(text, ",") {
		if err := checkHost(host); err != nil {
			return err
		}
		if len(u.Hosts) > 0 && isPort(host) {
			return errors.New("URL has a number in place of a host: a port follows its host and a colon, as in host:2181")
		}
		u.Hosts = append(u.Hosts, host)
	}
	return nil
}

// What a URL has in it.
var (
	schemeForm    = regexp.MustCompile(`^[a-z0-9+.-]+$`)
	hostNameForm  = regexp.MustCompile(`^[\pL\p{Nd}._-]+$`)
	settingInRoot = regexp.MustCompile(`[&;][a-z_]+=`) // added to a root with & or ; in place of ?
)

// checkRootInURL rejects roots that ZooKeeper allows but that are mistakes in a URL, as in
// zk://a:2181/x,b:2181/x or /x&session_timeout=10s. Programs with different roots do not
// exclude each other, so the mistake would not be noticed.
func checkRootInURL(root string) error {
	switch {
	case hasHost(root):
		return errors.New("URL has a host after the root: hosts go before the root, which is given once, as in zk://a:2181,b:2181/root (Config.Root takes any root)")
	case settingInRoot.MatchString(root):
		return errors.New("URL has a setting in its root: settings follow a ?, as in /root?key=value&key=value (Config.Root takes any root)")
	case strings.ContainsFunc(root, unicode.IsSpace):
		return errors.New("URL has a space in its root: remove it (Config.Root takes any root)")
	}
	return nil
}

func parseCredentials(u *driver.URL, text string) error {
	user, password, _ := strings.Cut(text, ":")
	if strings.ContainsAny(text, "/?") {
		return errors.New("URL user or password has a / or ? in it: write it as %2F or %3F")
	}
	if strings.Contains(text, ",") {
		return errors.New("URL has a comma before the @: credentials go before the first host, and are for all hosts; write a comma in a user or password as %2C")
	}
	var err1, err2 error
	u.User, err1 = url.PathUnescape(user)
	password, err2 = url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return errors.New("URL user or password has a % that does not begin an escape like %2F: write % itself as %25")
	}
	if u.User == "" {
		return errNoUser
	}
	u.Password = driver.NewSecret(password)
	return checkUser(u.User, u.Password)
}

// errNoUser is the error for a password without a user.
var errNoUser = errors.New("URL has credentials without a user name: want user:password@ before the first host")

func checkUser(user string, password driver.Secret) error {
	switch {
	case user == "" && password.Reveal() != "":
		return errNoUser
	case strings.Contains(user, ":"):
		return errors.New("URL user name has a colon in it, which digest authentication does not allow")
	}
	return nil
}

// checkHost rejects text that does not have the form of a host or host:port. Drivers
// decide what a host means, and whether it needs a port.
//
// If the "@" of the URL was forgotten or escaped, the text is a user and a password. So
// errors show only a plain name, and nothing that follows a colon.
func checkHost(host string) error {
	const wantIPv6 = "want [address]:port for IPv6"
	var name, port string
	var hasPort bool
	switch {
	case host == "":
		return errors.New("URL has an empty host in its list: hosts are joined by single commas, as in a:2181,b:2181")
	case host[0] == '[':
		address, rest, closed := strings.Cut(host[1:], "]")
		if _, err := netip.ParseAddr(address); !closed || err != nil {
			return errors.New("URL has a host in brackets that is not an IPv6 address: " + wantIPv6)
		}
		name = address
		if port, hasPort = strings.CutPrefix(rest, ":"); rest != "" && !hasPort {
			return fmt.Errorf("URL host [%s] has something other than a port after its bracket: %s", address, wantIPv6)
		}
	default:
		name, port, hasPort = strings.Cut(host, ":")
		if strings.Contains(port, ":") {
			return errors.New("URL has a host with several colons: hosts are joined by commas, and an IPv6 address goes in brackets: " + wantIPv6)
		}
		if !hostNameForm.MatchString(name) {
			return errors.New("URL has a host with a character that host names do not have (a user and a password go before the first host, as user:password@, with special characters as %XX)")
		}
	}
	if hasPort && !isPort(port) {
		return fmt.Errorf("URL host %q has something other than a port after its colon: want a number from 1 to 65535 (a user and a password go before the first host, as user:password@)", name)
	}
	return nil
}

// hasHost reports whether a root has hosts in it: after a comma follows a name with a
// port, or a name with the same root again. A comma alone may be part of a path.
func hasHost(root string) bool {
	first, rest, _ := strings.Cut(root, ",")
	first = strings.TrimSuffix(first, "/")
	for part := range strings.SplitSeq(rest, ",") {
		host, path, _ := strings.Cut(part, "/")
		_, port, hasPort := strings.Cut(host, ":")
		if hasPort && isPort(port) || host != "" && first != "" && strings.TrimSuffix(path, "/") == first {
			return true
		}
	}
	return false
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}
