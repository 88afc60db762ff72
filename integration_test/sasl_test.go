package integration_test

import (
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// jaasDigest is the JAAS file of servers that authenticate clients by DIGEST-MD5. One of the
// users is that of dial.
const jaasDigest = `Server {
	org.apache.zookeeper.server.auth.DigestLoginModule required
	user_` + canaryUser + `="` + canary + `"
	user_other="` + canary + `";
};
`

// requiresSASL makes servers refuse clients without SASL.
const requiresSASL = "sessionRequireClientSASLAuth=true"

// bySASL returns the parameters of clients that authenticate by DIGEST-MD5, and own the znodes
// that they create.
func bySASL(kv ...string) map[string][]string {
	return quick(append([]string{"sasl", "digest-md5", "acl", "creator"}, kv...)...)
}

func TestSASLSmoke(t *testing.T) {
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{JAAS: jaasDigest, Extra: []string{requiresSASL}})
	c := dial(t, e.Hosts(), bySASL())
	if err := c.Ping(within(t)); err != nil {
		t.Fatal(err)
	}
	release(t, acquire(t, c.Mutex("x")))
}
