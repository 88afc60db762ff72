package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	only := flag.String("run", ".", "try only the mutants whose names match this regular expression")
	parallel := flag.Int("parallel", 2, "the number of mutants that are tried at the same time")
	seeds := flag.Int("seeds", 300, "the number of simulation runs that a mutant has to pass to survive")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, max(*parallel, 1), max(*seeds, 1)); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, parallel, seeds int) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	all, err := load(root)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(slices.Clone(all), func(m numbered) bool { return !pattern.MatchString(m.name) })
	if len(list) == 0 {
		return fmt.Errorf("no mutant matches %q", only)
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l := &laboratory{root: root, dir: dir, seeds: seeds, all: all}
	began := time.Now()
	if err := l.control(ctx, list); err != nil {
		return err
	}
	verdicts := l.tryAll(ctx, list, parallel)
	fmt.Println()
	return report(os.Stdout, verdicts, time.Since(began))
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/zklock/go-zklock").Output()
	return strings.TrimSpace(string(out)), err
}

// control builds the tests. Of the tests that mutants are expected to fail, it runs
// each without any mutant.
func (l *laboratory) control(ctx context.Context, list []numbered) error {
	tests := make(map[string][]string)
	for _, m := range list {
		for _, pkg := range m.testers() {
			if _, ok := tests[pkg]; !ok {
				tests[pkg] = nil // its tests are built, also if none is named
			}
		}
		for _, name := range m.tests {
			if name != "TestSimulation" && name != wireSimulation && !slices.Contains(tests[m.tester()], name) {
				tests[m.tester()] = append(tests[m.tester()], name)
			}
		}
	}
	for pkg, names := range tests {
		if err := l.build(ctx, pkg); err != nil {
			return err
		}
		if len(names) == 0 {
			continue // only the simulation is tried
		}
		failed, err := l.run(ctx, 0, stage{name: "control", pkg: pkg, run: exactly(names), limit: 5 * time.Minute})
		if failed != "" {
			err = fmt.Errorf("%s fails without any mutant: %s", pkg, failed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tryAll tries several mutants at a time, and prints each verdict as soon as it is known.
func (l *laboratory) tryAll(ctx context.Context, list []numbered, parallel int) []verdict {
	verdicts := make([]verdict, len(list))
	next := make(chan int)
	var wg sync.WaitGroup
	for range parallel {
		wg.Go(func() {
			for i := range next {
				verdicts[i] = l.try(ctx, list[i])
				fmt.Printf("%-36s %5.1f s  %s\n", list[i].name, verdicts[i].took.Seconds(), verdicts[i])
			}
		})
	}
	for i := range list {
		if ctx.Err() != nil {
			verdicts[i] = verdict{mutant: list[i].mutant, err: errors.New("interrupted")}
			continue
		}
		next <- i
	}
	close(next)
	wg.Wait()
	return verdicts
}
