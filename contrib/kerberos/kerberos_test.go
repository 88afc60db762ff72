package kerberos_test

import (
	"context"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/kerberos"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/kdc"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

func TestSmoke(t *testing.T) {
	ensemble.Require(t)
	kdc.Require(t)
	k := kdc.Start(t, kdc.Config{})
	server := k.Keytab("zookeeper/localhost")
	e := ensemble.Start(t, ensemble.Config{JAAS: kdc.JAAS("zookeeper/localhost", server), JavaOptions: k.JavaOptions(), Extra: []string{"sessionRequireClientSASLAuth=true"}})
	m := kerberos.Keytab("svc", k.Keytab("svc"), kerberos.WithConfigFile(k.ConfigFile()))
	c, err := zklock.Open("zk://"+e.Hosts()+"/locks?tick_time=500ms&acl=sasl:svc%40"+kdc.Realm+":cdrwa", zkdriver.WithSASL(m))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := c.Ping(ctx); err != nil {
		t.Fatal(err)
	}
}
