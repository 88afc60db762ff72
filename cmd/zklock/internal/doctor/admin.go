package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// adminPort is where a server's AdminServer listens by default.
const adminPort = "8080"

// adminLimit bounds a question to an AdminServer.
const adminLimit = time.Second

// adminConf asks the AdminServer of a server for what conf would say, with the keys of conf in lower case. Another program may
// listen there, or another server of the same machine: the answer counts if it names the port that clients use. It is
// empty if there is none.
func adminConf(ctx context.Context, host, adminPort string) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, adminLimit)
	defer cancel()
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = host, "2181"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(name, adminPort)+"/commands/configuration", http.NoBody)
	if err != nil {
		return nil
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var said map[string]any
	if err := json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&said); err != nil || said["command"] != "configuration" || fmt.Sprint(said["client_port"]) != port {
		return nil
	}
	conf := make(map[string]string)
	for key, value := range said {
		if number, ok := value.(float64); ok {
			conf[strings.ReplaceAll(key, "_", "")] = fmt.Sprintf("%.0f", number)
		}
	}
	return conf
}
