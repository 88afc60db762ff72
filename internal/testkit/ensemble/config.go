package ensemble

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Config configures an ensemble. The zero value is a single server with a short tick.
type Config struct {
	// Servers is the number of servers; 0 means 1. A single server runs standalone.
	Servers int

	// Observers is how many of the servers, the last ones, have no vote.
	Observers int

	// Port is the port where the first server listens for clients; 0 means a free
	// one.
	Port int

	// TickTime is the servers' tickTime; 0 means 500ms. The shortest session timeout
	// that a client can have is 2 ticks, the longest 20 ticks.
	TickTime time.Duration

	// InitLimit is how many ticks a follower may take to connect to the leader
	// and catch up; 0 means 20.
	InitLimit int

	// SyncLimit is how many ticks a follower and its leader go on without hearing
	// from each other; 0 means 4.
	SyncLimit int

	// MinSessionTimeout is the lower limit; 0 means 2 ticks.
	MinSessionTimeout time.Duration

	// MaxSessionTimeout is the upper limit; 0 means 20 ticks.
	MaxSessionTimeout time.Duration

	// ContainerCheckInterval is the time between two checks of the leader for empty
	// containers to remove; 0 means ZooKeeper's default, a minute.
	ContainerCheckInterval time.Duration

	// Extra has additional lines for every server's zoo.cfg. They override the lines
	// that this package writes.
	Extra []string

	// JavaOptions has additional options for the Java machine of every server, such
	// as -Dzookeeper.extendedTypesEnabled=true.
	JavaOptions []string

	// TLS gives every server a port for TLS in addition to the plain one; nil means none.
	TLS *TLS

	// JAAS is the content of every server's JAAS file, whose section Server chooses the SASL
	// mechanism for clients; "" means none. The servers then also know identities of the scheme
	// sasl.
	JAAS string

	// DirectQuorum connects the servers without proxies between them, for
	// measurements. Their links cannot be cut then.
	DirectQuorum bool

	// Reconfigurable lets clients change which servers belong to the ensemble, and needs
	// DirectQuorum: a server's address is the same for all others then. See
	// Ensemble.Add and Server.Member.
	Reconfigurable bool

	// StartTimeout bounds every wait of this package for servers; 0 means one minute.
	StartTimeout time.Duration

	// Stop ends the waits of this package for servers when it is closed; nil means that nothing does.
	Stop <-chan struct{}
}

// TLS configures the servers' TLS ports. The files are PEM.
type TLS struct {
	// KeyStore is a file with the servers' private key (PKCS #8) and
	// certificate.
	KeyStore string

	// TrustStore is a file with certificates of authorities. The servers accept
	// client certificates that these have signed.
	TrustStore string

	// ClientAuth is the value of ssl.clientAuth: need, want or none; "" means none.
	ClientAuth string
}

// Shipped is the configuration of servers as ZooKeeper's documentation and its sample set them up.
func Shipped(servers int) Config {
	return Config{Servers: servers, TickTime: 2 * time.Second, InitLimit: 10, SyncLimit: 5}
}

// withDefaults replaces zero fields with their defaults.
func (c Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.Servers, 1)
	def(&c.InitLimit, 20)
	def(&c.SyncLimit, 4)
	if c.TickTime == 0 {
		c.TickTime = 500 * time.Millisecond
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = time.Minute
	}
	return c
}

// log4jProperties configures the logging of Debian's package and of releases before 3.8.
const log4jProperties = `log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss,SSS} %-5p %c{1} - %m%n
`

// logbackXML configures the logging of releases since 3.8.
const logbackXML = `<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5p %logger{0} - %m%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="OUT"/></root>
</configuration>
`

// writeConfig writes the files that a server reads at its start.
func (s *Server) writeConfig() error {
	c := s.ensemble.config
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("tickTime=%d", c.TickTime.Milliseconds())
	line("initLimit=%d", c.InitLimit)
	line("syncLimit=%d", c.SyncLimit)
	line("dataDir=%s", filepath.ToSlash(filepath.Join(s.dir, "data")))
	if !c.Reconfigurable { // else the address for clients is part of the server's
		line("clientPort=%d", s.ports.client)
		line("clientPortAddress=127.0.0.1")
	}
	line("maxClientCnxns=0")
	line("admin.enableServer=false")
	line("4lw.commands.whitelist=*")
	if c.MinSessionTimeout != 0 {
		line("minSessionTimeout=%d", c.MinSessionTimeout.Milliseconds())
	}
	if c.MaxSessionTimeout != 0 {
		line("maxSessionTimeout=%d", c.MaxSessionTimeout.Milliseconds())
	}
	if t := c.TLS; t != nil {
		line("serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory")
		line("secureClientPort=%d", s.ports.secure)
		line("secureClientPortAddress=127.0.0.1")
		line("ssl.keyStore.location=%s", filepath.ToSlash(t.KeyStore))
		line("ssl.trustStore.location=%s", filepath.ToSlash(t.TrustStore))
		auth := t.ClientAuth
		if auth == "" {
			auth = "none"
		}
		line("ssl.clientAuth=%s", auth)
	}
	if c.JAAS != "" {
		line("authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider")
	}
	if c.Reconfigurable {
		line("reconfigEnabled=true")
		line("standaloneEnabled=false")
		line("skipACL=yes")
		for _, peer := range s.ensemble.Servers() {
			line("%s", peer.Member())
		}
	} else if c.Servers > 1 {
		for _, peer := range s.ensemble.servers {
			quorum, election := s.ensemble.links.ports(s, peer)
			role := ""
			if peer.observes() {
				role = ":observer"
			}
			line("server.%d=127.0.0.1:%d:%d%s", peer.id(), quorum, election, role)
		}
	}
	if s.observes() {
		line("peerType=observer")
	}
	for _, extra := range c.Extra {
		line("%s", extra)
	}
	for name, content := range map[string]string{
		"zoo.cfg":               b.String(),
		"conf/log4j.properties": log4jProperties,
		"conf/logback.xml":      logbackXML,
		"conf/jaas.conf":        c.JAAS,
		"data/myid":             fmt.Sprintf("%d\n", s.id()),
	} {
		path := filepath.Join(s.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// observes reports whether the server is one of the ensemble's observers. Servers that are
// added later are none.
func (s *Server) observes() bool {
	c := s.ensemble.config
	return s.index < c.Servers && s.index >= c.Servers-c.Observers
}

// command returns the arguments of java for a server. Its mu is held.
func (s *Server) command(in Installation) []string {
	c := s.ensemble.config
	args := []string{
		"-Xms32m", "-Xmx128m", "-Xss512k",
		// One garbage collector thread and one compiler stage: the quickest start
		// where many servers share few cores.
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto",
		"-Djava.awt.headless=true", "-Djava.net.preferIPv4Stack=true",
		"-Dzookeeper.jmx.log4j.disable=true",
		// Test data need not survive a crash of the machine: no fsync, and no
		// preallocation of 64 MiB for every transaction log.
		"-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=256",
	}
	if c.ContainerCheckInterval != 0 {
		args = append(args, fmt.Sprintf("-Dznode.container.checkIntervalMs=%d", c.ContainerCheckInterval.Milliseconds()))
	}
	if c.JAAS != "" {
		// The releases that refuse DIGEST-MD5 do so in FIPS mode, their default.
		args = append(args, "-Djava.security.auth.login.config="+filepath.Join(s.dir, "conf", "jaas.conf"), "-Dzookeeper.fips-mode=false")
	}
	if archive := os.Getenv(ClassesEnv); archive != "" {
		if _, err := os.Stat(archive); err == nil {
			args = append(args, "-XX:SharedArchiveFile="+archive)
		}
	}
	args = append(append(args, c.JavaOptions...), s.javaOptions...)
	// No folder is in the class path: with one, java would use no archive of classes.
	return append(args,
		"-Dlog4j.configuration=file:"+filepath.Join(s.dir, "conf", "log4j.properties"),
		"-Dlogback.configurationFile="+filepath.Join(s.dir, "conf", "logback.xml"),
		"-cp", in.ClassPath,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(s.dir, "zoo.cfg"))
}
