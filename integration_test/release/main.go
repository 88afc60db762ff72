// Command release rehearses a release without publishing anything. It packs each module of the
// release, as the module proxy would, into a folder that serves as a proxy. Then it
// does what a user does, in an empty module outside of the project: it gets each module by its
// version, builds a program with all of its packages, and installs the command.
//
//	go run ./integration_test/release -version v0.1.0
//
// With -announce it instead turns the documents of the clone into those of the release.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

func main() {
	version := flag.String("version", "", "the version to rehearse: v0.1.0")
	keep := flag.String("o", "", "the folder for the proxy, which is kept; by default it is a temporary one")
	modules := flag.Bool("modules", false, "print the folders of the modules below the root that a release has, and do nothing else")
	documents := flag.Bool("announce", false, "change the documents only: install commands, the changelog's date")
	flag.Parse()
	if *modules {
		for _, m := range released[1:] {
			fmt.Println(m)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	do := func() error { return run(ctx, *version, *keep) }
	if *documents {
		do = func() error { return change(ctx, *version) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// rootFor returns the folder of the clone, if the text is a version.
func rootFor(ctx context.Context, version string) (string, error) {
	if semver.Canonical(version) != version || version == "" {
		return "", fmt.Errorf("-version=%q is not a version: give one such as v0.1.0", version)
	}
	return output(ctx, "", nil, "go", "list", "-m", "-f", "{{.Dir}}", module)
}

// change turns the documents of the clone into those of the release.
func change(ctx context.Context, version string) error {
	root, err := rootFor(ctx, version)
	if err != nil {
		return err
	}
	changed, err := announce(ctx, root, version, time.Now().UTC())
	for _, path := range changed {
		fmt.Println("changed ", path)
	}
	return err
}

func run(ctx context.Context, version, keep string) error {
	root, err := rootFor(ctx, version)
	if err != nil {
		return err
	}
	if changed, err := output(ctx, root, nil, "git", "status", "--porcelain"); err != nil {
		return err
	} else if changed != "" {
		fmt.Println("with changes that are not committed")
	}
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	folder := keep
	if folder == "" {
		folder = filepath.Join(work, "proxy")
	}
	p := proxy{root: root, folder: folder, version: version}
	for _, m := range released {
		size, files, err := p.add(ctx, m)
		if err != nil {
			return fmt.Errorf("pack %s: %w", m.path(), err)
		}
		fmt.Printf("packed   %-50s %4d files %6d KB\n", m.path()+"@"+version, files, size>>10)
	}
	env, err := p.environment(ctx, work)
	if err != nil {
		return err
	}
	u := user{work: work, env: env, version: version}
	for _, m := range released {
		if m == command {
			continue // it is installed below
		}
		packages, err := p.packages(ctx, m)
		if err != nil {
			return err
		}
		modules, sums, err := u.build(ctx, m, packages)
		if err != nil {
			return fmt.Errorf("use %s: %w", m.path(), err)
		}
		fmt.Printf("built    %-50s %2d packages, %3d modules in go list -m all, %3d lines in go.sum\n", m.path()+"@"+version, len(packages), len(modules), sums)
		if m == "" {
			fmt.Println("         " + strings.Join(modules[1:], "\n         "))
		}
	}
	printed, err := u.install(ctx)
	if err != nil {
		return fmt.Errorf("install the command: %w", err)
	}
	fmt.Printf("installed %s\n", printed)
	if !strings.Contains(printed, version) {
		return errors.New("the command does not report the version that was installed")
	}
	return nil
}

// module is the path of the root.
const module = "github.com/zklock/go-zklock"

// folderOf is the folder of a module below the root; "" for the root.
type folderOf string

// command is the module of the command, which programs do not import.
const command folderOf = "cmd/zklock"

// released are the modules of a release, each behind those that it requires.
var released = []folderOf{"", "contrib/locktest", command, "middleware/ginlock", "interceptors", "tracing", "contrib/connectlock", "contrib/contention", "contrib/gocronlock", "contrib/kerberos", "contrib/migratelock", "contrib/zklockvet"}

func (m folderOf) path() string { return strings.TrimSuffix(module+"/"+string(m), "/") }

// output runs a command and returns what it prints.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// environment returns the environment of a user whose first proxy is the folder, and whose module
// cache, below work, is empty: a version that was rehearsed before must not be in it. The modules
// of others come from the cache of this machine, as far as it has them.
func (p proxy) environment(ctx context.Context, work string) ([]string, error) {
	settings, err := output(ctx, "", nil, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return nil, err
	}
	cache, others, _ := strings.Cut(settings, "\n")
	file := func(folder string) string { return "file://" + filepath.ToSlash(folder) }
	return append(slices.Clone(os.Environ()), "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw", "GOMODCACHE="+filepath.Join(work, "mod"),
		"GOPROXY="+file(p.folder)+","+file(filepath.Join(cache, "cache", "download"))+","+others, "GONOSUMDB="+module, "GOPRIVATE="), nil
}
