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

// look asks the server with the four-letter word mntr.
func look(server string) (counters, error) {
	c, err := net.DialTimeout("tcp", server, 5*time.Second)
	if err != nil {
		return counters{}, fmt.Errorf("no server to ask for its counters: %w", err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return counters{}, err
	}
	if _, err := io.WriteString(c, "mntr"); err != nil {
		return counters{}, err
	}
	values := make(map[string]float64)
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		key, text, _ := strings.Cut(lines.Text(), "\t")
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			values[strings.TrimPrefix(key, "zk_")] = v
		}
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
