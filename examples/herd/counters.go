package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// counters are what a server has counted since it was started.
type counters struct {
	notifications float64 // watchers notified
	reads         float64 // requests answered without a transaction
}

func (c counters) since(before counters) counters {
	return counters{c.notifications - before.notifications, c.reads - before.reads}
}

// settled returns the counters after the server has sent all notifications: it reads them
// until two reads in a row have the same number.
func settled(ctx context.Context, server string) (counters, error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	last := counters{notifications: -1}
	for {
		now, err := look(server)
		if err != nil || now.notifications == last.notifications {
			return now, err
		}
		last = now
		select {
		case <-tick.C:
		case <-ctx.Done():
			return now, ctx.Err()
		}
	}
}

// errNoCounters means that look got no answer from the server.
var errNoCounters = errors.New("no server answers the request for its counters")

// look asks the server for its counters with the four-letter word mntr.
func look(server string) (counters, error) {
	c, err := net.DialTimeout("tcp", server, 5*time.Second)
	if err != nil {
		return counters{}, fmt.Errorf("%w: %w", errNoCounters, err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return counters{}, err
	}
	_, _ = io.WriteString(c, "mntr") // if it fails, reading fails too
	values := make(map[string]float64)
	lines := bufio.NewScanner(c)
	answered := false
	for lines.Scan() {
		answered = true
		key, text, _ := strings.Cut(lines.Text(), "\t")
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			values[strings.TrimPrefix(key, "zk_")] = v
		}
	}
	if !answered {
		return counters{}, fmt.Errorf("%w: %s closed the connection", errNoCounters, server)
	}
	if _, ok := values["cnt_readlatency"]; !ok {
		return counters{}, errors.Join(lines.Err(), fmt.Errorf("%s does not answer mntr with its metrics: it must be ZooKeeper 3.6 or later, with 4lw.commands.whitelist=mntr", server))
	}
	var n float64
	for _, what := range []string{"deleted", "children", "changed", "created"} {
		n += values["sum_node_"+what+"_watch_count"]
	}
	return counters{n, values["cnt_readlatency"]}, nil
}
