package main

import (
	"flag"
	"fmt"
	"strings"
	"time"
)

// flags are the settings of the command line.
type flags struct {
	url, name, http, grpc string
	otlp, prometheus      string
	elect                 string
	stdout                bool
	every, demo           time.Duration
}

func parse(args []string) (f flags, err error) {
	set := flag.NewFlagSet("observability", flag.ContinueOnError)
	set.StringVar(&f.url, "url", "mem://shop", "the ensemble: zk://host:port/root, or mem://name for one in memory")
	set.StringVar(&f.name, "name", "shop", "name of this process: service.name in its spans and metrics")
	set.StringVar(&f.http, "http", "127.0.0.1:0", "address of the HTTP service")
	set.StringVar(&f.grpc, "grpc", "127.0.0.1:0", "address of the gRPC service")
	set.StringVar(&f.otlp, "otlp", "", "host:port of an OTLP collector (gRPC, without TLS)")
	set.StringVar(&f.prometheus, "prometheus", "", "address to serve /metrics at; :port means 127.0.0.1:port")
	set.StringVar(&f.elect, "elect", "", "name of an election in which this process stands")
	set.BoolVar(&f.stdout, "stdout", false, "print spans and metrics, as JSON")
	set.DurationVar(&f.every, "every", 5*time.Second, "how often metrics are sent or printed")
	set.DurationVar(&f.demo, "demo", 0, "how long to call the services before the program ends; 0: serve until interrupted")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if strings.HasPrefix(f.prometheus, ":") {
		f.prometheus = "127.0.0.1" + f.prometheus
	}
	return f, nil
}
