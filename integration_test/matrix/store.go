package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zklock/go-zklock/integration_test/maven"
)

// errNotReleased is the error for a line without a release.
var errNotReleased = errors.New("not released yet")

// store is the cache of servers and of other lock libraries. Each release has a folder of its
// own, NAME-VERSION.
type store struct {
	folder string
	maven  func() (*maven.Tool, error)
	logf   func(format string, args ...any)
}

// release is a release in the cache.
type release struct {
	version string
	folder  string
}

// series is a range of releases of a Java library.
type series struct {
	group, name string
	prefix      string // of the versions in the range, such as "3.9."
	low, high   string // the first version, and one that is above all others of the range
}

// server returns the release to run of a line. Its folder is one for ZOOKEEPER_HOME. It
// fetches what the cache does not have.
func (s *store) server(ctx context.Context, l line) (release, error) {
	const group, name = "org.apache.zookeeper", "zookeeper"
	version := l.last
	if version == "" {
		var err error
		version, err = s.newest(ctx, series{group, name, l.name + ".", l.name + ".0", l.name + ".999"})
		if errors.Is(err, maven.ErrNoVersion) && !l.released() {
			return release{}, errNotReleased
		}
		if err != nil {
			return release{}, err
		}
	}
	return s.fetch(ctx, name, version, "lib", maven.Project{
		Artifacts: append([]maven.Artifact{{Group: group, Name: name, Version: version}}, l.own...),
		Versions:  &maven.Artifact{Group: group, Name: "parent", Version: version},
	})
}

// curator returns the newest Curator.
func (s *store) curator(ctx context.Context) (release, error) {
	const group, name = "org.apache.curator", "curator-recipes"
	version, err := s.newest(ctx, series{group, name, "5.", "5.5.0", "5.999"})
	if err != nil {
		return release{}, err
	}
	return s.fetch(ctx, name, version, "", maven.Project{Artifacts: []maven.Artifact{{Group: group, Name: name, Version: version}}})
}

// fetch returns a release. If the cache does not have it, Maven copies its jars into a
// subfolder of its folder.
func (s *store) fetch(ctx context.Context, name, version, sub string, p maven.Project) (release, error) {
	r := release{version, s.path(name, version)}
	jars := filepath.Join(r.folder, sub)
	if _, err := os.Stat(jars); err == nil {
		return r, nil
	}
	tool, err := s.maven()
	if err != nil {
		return release{}, err
	}
	s.logf("fetching %s %s", name, version)
	if err := tool.Copy(ctx, p, jars); err != nil {
		return release{}, err
	}
	return r, nil
}

// newest returns the newest version of a series. If Maven cannot find out, for example without
// a network, it is the newest one in the cache. Without a network, Maven may also say that no
// version has been released.
func (s *store) newest(ctx context.Context, l series) (string, error) {
	version, err := func() (string, error) {
		tool, err := s.maven()
		if err != nil {
			return "", err
		}
		newest, missing, err := tool.Newest(ctx, l.group, l.name, l.low, l.high)
		if err == nil && len(missing) > 0 {
			s.logf("%s %s cannot be fetched, although Maven lists it", l.name, strings.Join(missing, ", "))
		}
		return newest, err
	}()
	if err == nil {
		return version, nil
	}
	cached := s.cached(l.name, l.prefix)
	if cached == "" || ctx.Err() != nil {
		return "", err
	}
	s.logf("%v: using %s, the newest in the cache", err, cached)
	return cached, nil
}

// cached returns the newest version in the cache that begins with a prefix, or "".
func (s *store) cached(name, prefix string) (newest string) {
	found, _ := filepath.Glob(s.path(name, prefix) + "*") // the pattern is valid
	for _, folder := range found {
		version := strings.TrimPrefix(folder, s.path(name, ""))
		if newest == "" || slices.Compare(numbers(version), numbers(newest)) > 0 {
			newest = version
		}
	}
	return newest
}

// numbers returns the numbers of a version.
func numbers(version string) (all []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			n = -1 // a version before the release
		}
		all = append(all, n)
	}
	return all
}

// path returns the folder of a version.
func (s *store) path(name, version string) string {
	return filepath.Join(s.folder, name+"-"+version)
}

// kazoo returns the newest kazoo, in a folder for PYTHONPATH. pip chooses the version, so the
// cache has the newest one of the day when it was filled.
func (s *store) kazoo(ctx context.Context) (release, error) {
	folder := filepath.Join(s.folder, "kazoo")
	if _, err := os.Stat(folder); err != nil {
		s.logf("fetching kazoo")
		if err := s.pip(ctx, "kazoo", folder); err != nil {
			return release{}, err
		}
	}
	found, err := filepath.Glob(filepath.Join(folder, "kazoo-*.dist-info"))
	if err != nil || len(found) != 1 {
		return release{}, errors.New(folder + " has no kazoo: remove the folder, and it is fetched again")
	}
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), "kazoo-"), ".dist-info")
	return release{version, folder}, nil
}

// addresses are where pip fetches from. They may have credentials.
var addresses = regexp.MustCompile(`https?://\S+`)

// pip installs a Python package into a folder, all or nothing.
func (s *store) pip(ctx context.Context, name, folder string) error {
	if err := os.MkdirAll(s.folder, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(s.folder, ".fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	out, err := exec.CommandContext(ctx, "python3", "-m", "pip", "install", "--quiet", "--target", filepath.Join(work, "lib"), name).CombinedOutput()
	if err != nil {
		return errors.New("pip install " + name + ": " + err.Error() + ": " + addresses.ReplaceAllString(strings.TrimSpace(string(out)), "(source)"))
	}
	return os.Rename(filepath.Join(work, "lib"), folder)
}
