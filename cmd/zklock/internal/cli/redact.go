package cli

import (
	"regexp"
	"strings"
)

// redact replaces the users and passwords of URLs in a text. The URLs stand in the wrong place, and may
// be incomplete. NODE@ZXID, host:port and a URL without a user stay.
func redact(text string) string {
	text = userInURL.ReplaceAllString(text, "://REDACTED@")
	text = userAlone.ReplaceAllString(text, "REDACTED@")
	return hostsInURL.ReplaceAllStringFunc(text, func(url string) string {
		hosts := hostsInURL.FindStringSubmatch(url)[1]
		if hostsForm.MatchString(strings.TrimRight(hosts, ":;,.)'")) { // a sentence may go on behind the URL
			return url
		}
		return "://REDACTED"
	})
}

// What redact looks for. A password may have an @ in it, and a space.
var (
	userInURL  = regexp.MustCompile(`://[^@\n]*@(\S*@)?`)                           // of a whole URL
	userAlone  = regexp.MustCompile(`[^\s/"'=]*:(?:[^\s/]|/[^\s/])\S* ?@`)          // of a URL without ://
	hostsInURL = regexp.MustCompile(`://([^\s"/?]*)[^\s"]*`)                        // of a URL without an @
	hostsForm  = regexp.MustCompile(`^(?:(?:\[[^\]]*\]|[^:,]+)(?::\d*)?(?:,|$))*$`) // hosts and their ports
)
