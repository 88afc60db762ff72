package zklock

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
)

// parseURL takes a connection URL apart:
//
//	scheme://[user[:password]@]host[:port][,host[:port]...][/root][?key=value[&key=value...]]
//
// It is done by hand because an authority with several hosts is none by RFC
// 3986, and net/url refuses some of them. No error repeats any part of the text
// before the root: it may hold a password, even when the text is malformed in a
// way that hides where.
func parseURL(text string) (driver.URL, error) {
	var u driver.URL
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme == "" {
		return u, errors.New(`URL has no scheme: want something like zk://host:2181/root`)
	}
	if strings.ContainsFunc(scheme, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '+' && r != '-' && r != '.'
	}) {
		return u, errors.New("URL scheme has a character that is none of a-z, 0-9, +, -, and a dot")
	}
	u.Scheme = scheme
	if strings.Contains(rest, "#") {
		return u, errors.New("URL has a fragment (#...): write # in a user or password as %23")
	}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.Contains(query, "@") {
		return u, errors.New("URL has an @ after the first ?: write ? in a user or password as %3F, and @ in a value as %40")
	}
	params, err := parseQuery(query)
	if err != nil {
		return u, err
	}
	u.Params = params

	// A password may hold any character but those written as %XX, so the last
	// "@" ends the credentials; a root has none.
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := parseCredentials(&u, rest[:at]); err != nil {
			return u, err
		}
		rest = rest[at+1:]
	}
	authority, root, hasRoot := strings.Cut(rest, "/")
	if hasRoot && root != "" {
		u.Root = "/" + root
	}
	if authority != "" {
		for host := range strings.SplitSeq(authority, ",") {
			if err := checkHost(host); err != nil {
				return u, err
			}
			u.Hosts = append(u.Hosts, host)
		}
	}
	return u, nil
}

func parseCredentials(u *driver.URL, text string) error {
	user, password, _ := strings.Cut(text, ":")
	if strings.ContainsAny(text, "/?") {
		return errors.New("URL user or password has a / or ? in it: write it as %2F or %3F")
	}
	var err1, err2 error
	u.User, err1 = url.PathUnescape(user)
	password, err2 = url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return errors.New("URL user or password has a % that starts no escape: write % itself as %25")
	}
	if u.User == "" {
		return errors.New("URL has credentials without a user name")
	}
	if strings.Contains(u.User, ":") {
		return errors.New("URL user name has a colon in it, which digest authentication cannot express")
	}
	u.Password = driver.NewSecret(password)
	return nil
}

// checkHost refuses what is no host or host:port by its form. What a host means,
// and whether it needs a port, is the driver's affair.
func checkHost(host string) error {
	name, port, hasPort := host, "", false
	switch {
	case host == "":
		return errors.New("URL has an empty host in its list")
	case host[0] == '[':
		end := strings.IndexByte(host, ']')
		if end < 0 {
			return errors.New("URL has a host with a bracket that is not closed: want [address]:port for IPv6")
		}
		name = host[1:end]
		if host[end+1:] != "" {
			if host[end+1] != ':' {
				return fmt.Errorf("URL host [%s] is followed by something: want [address]:port", name)
			}
			port, hasPort = host[end+2:], true
		}
	default:
		name, port, hasPort = strings.Cut(host, ":")
		if strings.Contains(port, ":") {
			return fmt.Errorf("URL host %q is followed by several colons: write an IPv6 address in brackets", name)
		}
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`"\<>^{}|%[]`, r) }) {
		return fmt.Errorf("URL host %q is no host name", name)
	}
	if hasPort && !isPort(port) {
		// The text after the colon stays out of the error: where the "@" was
		// forgotten it is a password.
		return fmt.Errorf("URL host %q: what follows the colon is no port from 1 to 65535 (for a user and password, put user:password@ in front)", name)
	}
	return nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

func parseQuery(query string) (url.Values, error) {
	params, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("URL query is malformed: want key=value pairs joined by &, with special characters as %XX")
	}
	return params, nil
}
