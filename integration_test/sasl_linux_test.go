package integration_test

import (
	"strings"
	"testing"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/kdc"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// saslRuns prepares runs of the chaos test whose workers authenticate by SASL. Their znodes belong
// to them alone; other clients may only look.
func saslRuns(t *testing.T, run func(t *testing.T, config ensemble.Config, as func(url string) string)) {
	t.Run("digest-md5", func(t *testing.T) {
		id := digestIdentity()
		run(t, id.config, func(url string) string {
			return url + "&sasl=digest-md5&acl=sasl:" + id.name + ":cdrwa,ip:127.0.0.1:r"
		})
	})
	t.Run("kerberos", func(t *testing.T) {
		id, k := kerberosIdentity(t, kdc.Config{})
		t.Setenv("KRB5_CONFIG", k.ConfigFile())
		t.Setenv("KRB5_CLIENT_KTNAME", k.Export("svc"))
		run(t, id.config, func(url string) string {
			url = strings.Replace(url, "://", "://svc@", 1)
			return url + "&sasl=kerberos&acl=sasl:" + strings.ReplaceAll(id.name, "@", "%40") + ":cdrwa,ip:127.0.0.1:r"
		})
	})
}

// TestSASLRollingRestart restarts each of three servers under load of clients that authenticate by
// SASL.
func TestSASLRollingRestart(t *testing.T) {
	long.Test(t, "three servers restart one after the other, for each mechanism")
	ensemble.Require(t)
	saslRuns(t, func(t *testing.T, config ensemble.Config, as func(string) string) {
		c := &chaos{t: t, root: rootOf(t), mild: true, kinds: []fault.Kind{fault.Rolling}, as: as}
		rolling := rollingConfig
		rolling.JAAS, rolling.JavaOptions = config.JAAS, config.JavaOptions
		c.run(chaosSeed(t), 0, rolling)
	})
}

// TestSASLChaos is the chaos test with clients that authenticate by SASL.
func TestSASLChaos(t *testing.T) {
	length := chaosLength(t)
	ensemble.Require(t)
	saslRuns(t, func(t *testing.T, config ensemble.Config, as func(string) string) {
		c := &chaos{t: t, root: rootOf(t), kinds: chosenKinds(t), as: as}
		config.Servers, config.TickTime, config.SyncLimit, config.Extra = 3, chaosTick, chaosSyncLimit, append(config.Extra, wholeSync)
		c.run(chaosSeed(t), length, config)
	})
}
