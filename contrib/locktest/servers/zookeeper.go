package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
)

// TickTime is the tickTime of the ZooKeeper servers. A session's timeout is from 2 to 20 of them.
const TickTime = 500 * time.Millisecond

// HomeEnv is the environment variable that names an unpacked ZooKeeper release to run instead of
// Debian's package.
const HomeEnv = "ZOOKEEPER_HOME"

// zooKeeper starts an ensemble of ZooKeeper servers. A server that rejoins gets the whole state: before 3.8.4 and in some
// later releases it may lose transactions if it gets a difference (ZOOKEEPER-4785, ZOOKEEPER-4925), and no lock is safe then. A server that follows reaches the quorum port of the one that leads
// through a proxy of its own. Elections need no proxy.
func zooKeeper(ctx context.Context, dir string, n int, o Options) (*Processes, error) {
	java, classes, err := zooKeeperClasses()
	if err != nil {
		return nil, err
	}
	ports, err := FreePorts(3 * n)
	if err != nil {
		return nil, err
	}
	var quorum []string
	for i := range n {
		quorum = append(quorum, fmt.Sprintf("127.0.0.1:%d", ports[3*i+1]))
	}
	var commands []Command
	for i := range n {
		home := filepath.Join(dir, fmt.Sprintf("zookeeper-%d", i+1))
		peers, err := fault.NewPeerLink(quorum)
		if err != nil {
			return nil, err
		}
		if err := writeZooKeeper(home, i, n, ports, peers.Addrs(), o.Tick); err != nil {
			return nil, err
		}
		commands = append(commands, Command{
			Path: java,
			Args: []string{
				"-Xms32m", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
				"-Djava.awt.headless=true", "-Djava.net.preferIPv4Stack=true", "-Dzookeeper.jmx.log4j.disable=true",
				"-Dlog4j.configuration=file:" + filepath.Join(home, "log4j.properties"), // before 3.8, and Debian's package
				"-Dlogback.configurationFile=" + filepath.Join(home, "logback.xml"),
				"-cp", classes, "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(home, "zoo.cfg"),
			},
			Addr:  fmt.Sprintf("127.0.0.1:%d", ports[3*i]),
			Log:   filepath.Join(home, "log"),
			Data:  filepath.Join(home, "data"),
			Ready: zooKeeperServes, Leads: zooKeeperLeads, Status: zooKeeperStatus, Peers: peers,
		})
	}
	return started(ctx, dir, o, commands)
}

// writeZooKeeper writes the files of one server. Proxies have the quorum ports of the others.
func writeZooKeeper(home string, index, n int, ports []int, proxies []string, tick time.Duration) error {
	initLimit, syncLimit := 10, 5
	if tick == 0 {
		tick, initLimit, syncLimit = TickTime, 20, 4
	}
	cfg := fmt.Sprintf(`tickTime=%d
initLimit=%d
syncLimit=%d
dataDir=%s
clientPort=%d
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
forceSnapshotSync=true
4lw.commands.whitelist=*
`, tick.Milliseconds(), initLimit, syncLimit, filepath.Join(home, "data"), ports[3*index])
	if n > 1 {
		for i := range n {
			quorum := fmt.Sprintf("127.0.0.1:%d", ports[3*i+1])
			if i != index {
				quorum = proxies[i]
			}
			cfg += fmt.Sprintf("server.%d=%s:%d\n", i+1, quorum, ports[3*i+2])
		}
	}
	if err := os.MkdirAll(filepath.Join(home, "data"), 0o777); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"zoo.cfg":   cfg,
		"data/myid": fmt.Sprintln(index + 1),
		"log4j.properties": `log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss,SSS} %-5p %c{1} - %m%n
`,
		"logback.xml": `<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5level %logger{0} - %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
`,
	} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// zooKeeperServes reports whether a ZooKeeper server serves clients, by its command srvr.
func zooKeeperServes(ctx context.Context, addr string) error {
	text, err := ask(ctx, addr, "srvr", 0)
	if err == nil && !strings.Contains(text, "Mode: ") {
		err = fmt.Errorf("it answers %.100q", text)
	}
	return err
}

// zooKeeperLeads reports whether a ZooKeeper server leads the others.
func zooKeeperLeads(ctx context.Context, addr string) (bool, error) {
	text, err := ask(ctx, addr, "srvr", 0)
	return strings.Contains(text, "Mode: leader"), err
}

// zooKeeperStatus asks a ZooKeeper server for its connections, and for the ephemeral nodes and the watches of each session.
func zooKeeperStatus(ctx context.Context, addr string) (string, error) {
	var b strings.Builder
	for _, command := range []string{"srvr", "cons", "dump", "wchc"} {
		text, err := ask(ctx, addr, command, 0)
		if fmt.Fprintf(&b, "\n%s:\n%s", command, text); err != nil {
			return b.String(), fmt.Errorf("%s: %w", command, err)
		}
	}
	return b.String(), nil
}

// zooKeeperClasses finds Java and the class path of a ZooKeeper server.
func zooKeeperClasses() (java, classes string, err error) {
	if java, err = exec.LookPath("java"); err != nil {
		return "", "", errors.New("no Java found: install a runtime, such as default-jre-headless")
	}
	if home := os.Getenv(HomeEnv); home != "" {
		jars, err := filepath.Glob(filepath.Join(home, "lib", "zookeeper-*.jar"))
		if err != nil || len(jars) == 0 {
			return "", "", fmt.Errorf("%s=%s has no lib/zookeeper-*.jar: set it to an unpacked binary release", HomeEnv, home)
		}
		return java, filepath.Join(home, "lib", "*"), nil
	}
	// The manifest of Debian's main jar names the other jars, but not the logging back end.
	const jars = "/usr/share/java/"
	if _, err := os.Stat(jars + "zookeeper.jar"); err != nil {
		return "", "", fmt.Errorf("no ZooKeeper found: install the package zookeeper, or set %s to an unpacked release", HomeEnv)
	}
	return java, strings.Join([]string{jars + "zookeeper.jar", jars + "slf4j-log4j12.jar", jars + "log4j-1.2.jar"}, string(os.PathListSeparator)), nil
}
