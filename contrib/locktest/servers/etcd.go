package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
)

// etcd starts members of etcd. Each member's address for the others is a proxy's. All members know the same
// addresses, so a proxy cannot know which of them connects. So Cut holds back only what the member says to the
// others, and what they say to it on connections that they begin.
func etcd(ctx context.Context, dir string, n int, o Options) (*Processes, error) {
	path, err := exec.LookPath("etcd")
	if err != nil {
		return nil, errors.New("no etcd found: install the package etcd-server")
	}
	ports, err := FreePorts(2 * n)
	if err != nil {
		return nil, err
	}
	var commands []Command
	var members []string
	for i := range n {
		peers, err := fault.NewPeerLink([]string{fmt.Sprintf("127.0.0.1:%d", ports[2*i+1])})
		if err != nil {
			return nil, err
		}
		members = append(members, fmt.Sprintf("m%d=http://%s", i, peers.Addrs()[0]))
		commands = append(commands, Command{
			Path: path, Addr: fmt.Sprintf("127.0.0.1:%d", ports[2*i]), Log: filepath.Join(dir, fmt.Sprintf("etcd-%d.log", i+1)),
			Ready: etcdServes, Leads: etcdLeads, Peers: peers,
		})
	}
	for i := range commands {
		client, other := "http://"+commands[i].Addr, fmt.Sprintf("http://127.0.0.1:%d", ports[2*i+1])
		commands[i].Args = []string{
			"--data-dir", filepath.Join(dir, fmt.Sprintf("etcd-%d", i+1)), "--name", fmt.Sprintf("m%d", i),
			"--initial-cluster", strings.Join(members, ","), "--listen-client-urls", client, "--advertise-client-urls", client,
			"--heartbeat-interval", "50", "--election-timeout", "500", "--pre-vote=true", // for short leases, as ZooKeeper's TickTime
			"--listen-peer-urls", other, "--initial-advertise-peer-urls", strings.SplitN(members[i], "=", 2)[1],
		}
	}
	return started(ctx, dir, o, commands)
}

// etcdServes asks a member whether it is healthy, which it is with a leader.
func etcdServes(ctx context.Context, addr string) error {
	text, err := get(ctx, "http://"+addr+"/health")
	if err == nil && !strings.Contains(text, `"true"`) {
		err = fmt.Errorf("it answers %.100q", text)
	}
	return err
}

// etcdLeads asks a member whether it leads.
func etcdLeads(ctx context.Context, addr string) (bool, error) {
	text, err := get(ctx, "http://"+addr+"/metrics")
	return strings.Contains(text, "\netcd_server_is_leader 1\n"), err
}

func get(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
