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

// counters are a server's own, since it was started.
type counters struct {
	notifications float64 // watchers told
	reads         float64 // requests answered without a transaction
}

func (c counters) since(before counters) counters {
	return counters{c.notifications - before.notifications, c.reads - before.reads}
}

// settled reads the counters when all notifications are out: two looks in a row
// show the same number.
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

// errNoCounters is how look reports a server that does not answer at all.
var errNoCounters = errors.New("no server to ask for its counters")

// look asks the server with the four-letter word mntr.
func look(server string) (counters, error) {
	c, err := net.DialTimeout("tcp", server, 5*time.Second)
	if err != nil {
		return counters{}, fmt.Errorf("%w: %w", errNoCounters, err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return counters{}, err
	}
	_, _ = io.WriteString(c, "mntr") // where it fails, so does reading
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
		return counters{}, fmt.Errorf("%w: %s closes the connection", errNoCounters, server)
	}
	if _, ok := values["cnt_readlatency"]; !ok {
		return counters{}, errors.Join(lines.Err(), fmt.Errorf("%s does not answer mntr with its metrics: it has to be 3.6 or later and to allow the command", server))
	}
	var n float64
	for _, what := range []string{"deleted", "children", "changed", "created"} {
		n += values["sum_node_"+what+"_watch_count"]
	}
	return counters{n, values["cnt_readlatency"]}, nil
}
