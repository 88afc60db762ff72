package maven

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// plugin is the plugin that copies jars.
const plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.11.0"

// ErrNoVersion is the error for a range without a released version.
var ErrNoVersion = errors.New("no version in this range has been released")

// Artifact is a library in Maven's notation.
type Artifact struct {
	// Group and Name identify the library, such as org.apache.zookeeper and zookeeper.
	Group, Name string

	// Version is a version, a range of versions such as [3.9.0,3.9.999], or "" for the
	// version that Project.Versions names.
	Version string

	// Alone leaves out the libraries that this one needs.
	Alone bool
}

// Project is a set of libraries that fit together.
type Project struct {
	// Artifacts are the libraries.
	Artifacts []Artifact

	// Versions is a pom that names the versions of libraries, or nil.
	Versions *Artifact
}

// Tool is the command that fetches libraries. Its methods are safe for concurrent use.
type Tool struct {
	path string
	run  func(*exec.Cmd) ([]byte, error)
}

// Find returns the tool. Its error says how to get the command mvn.
func Find() (*Tool, error) {
	path, err := exec.LookPath("mvn")
	if err != nil {
		return nil, fmt.Errorf("no Maven found, which fetches Java libraries: install the package maven: %w", err)
	}
	return &Tool{path, (*exec.Cmd).CombinedOutput}, nil
}

// Copy fetches the jars of a project into a folder, which it creates. If it fails, the
// folder does not exist. The error matches [ErrNoVersion] if a range has no version.
func (m *Tool) Copy(ctx context.Context, p Project, folder string) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	// Another process may fetch the same folder at the same time.
	work, err := os.MkdirTemp(filepath.Dir(folder), ".fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	jars, err := m.copy(ctx, p, work)
	if err != nil {
		return err
	}
	if err := os.Rename(jars, folder); err != nil && !isFolder(folder) {
		return err
	}
	return nil
}

// copy fetches the jars into a folder below work.
func (m *Tool) copy(ctx context.Context, p Project, work string) (jars string, err error) {
	text, err := p.pom()
	if err != nil {
		return "", err
	}
	pom := filepath.Join(work, "pom.xml")
	if err := os.WriteFile(pom, text, 0o644); err != nil {
		return "", err
	}
	jars = filepath.Join(work, "jars")
	cmd := exec.CommandContext(ctx, m.path, "--batch-mode", "--quiet", "--file", pom,
		plugin+":copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+jars)
	cmd.Dir = work
	if out, err := m.run(cmd); err != nil {
		return "", explain(p, out, err)
	}
	if !isFolder(jars) {
		return "", fmt.Errorf("maven: %s: mvn has copied no jar", p)
	}
	return jars, nil
}

// isFolder reports whether path is a folder.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// attempts is how many versions of a range Newest tries: a mirror may list a version before it
// has all files of it.
const attempts = 3

// Newest returns the newest version of a library that can be fetched, in a range from low to
// high, for example from 3.9.0 to 3.9.999. missing are newer versions that are listed but
// cannot be fetched. The error matches [ErrNoVersion] if there is no version.
func (m *Tool) Newest(ctx context.Context, group, name, low, high string) (newest string, missing []string, err error) {
	work, err := os.MkdirTemp("", "maven-")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(work)
	bracket, first := "]", error(nil)
	for range attempts {
		a := Artifact{Group: group, Name: name, Version: "[" + low + "," + high + bracket, Alone: true}
		jars, err := m.copy(ctx, Project{Artifacts: []Artifact{a}}, work)
		if err == nil {
			newest, err = version(jars, name)
			return newest, missing, err
		}
		if first == nil {
			first = err
		}
		absent := unavailable(err, name)
		if absent == "" || absent == high || errors.Is(err, ErrNoVersion) {
			return "", missing, first
		}
		missing = append(missing, absent)
		high, bracket = absent, ")"
	}
	return "", missing, first
}

// version finds the version of a library in the name of its jar.
func version(jars, name string) (string, error) {
	found, err := filepath.Glob(filepath.Join(jars, name+"-*.jar"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("maven: %d jars of %s were copied, want 1: %w", len(found), name, err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), name+"-"), ".jar"), nil
}

// String returns the coordinates of the libraries.
func (p Project) String() string {
	all := make([]string, len(p.Artifacts))
	for i, a := range p.Artifacts {
		all[i] = strings.TrimSuffix(a.Group+":"+a.Name+":"+a.Version, ":")
	}
	return strings.Join(all, " ")
}

// The elements of a pom.
type (
	dependency struct {
		Group   string   `xml:"groupId"`
		Name    string   `xml:"artifactId"`
		Version string   `xml:"version,omitempty"`
		Type    string   `xml:"type,omitempty"`
		Scope   string   `xml:"scope,omitempty"`
		Without *without `xml:"exclusions>exclusion"`
	}
	without struct {
		Group string `xml:"groupId"`
		Name  string `xml:"artifactId"`
	}
	project struct {
		XMLName   xml.Name     `xml:"project"`
		Model     string       `xml:"modelVersion"`
		Group     string       `xml:"groupId"`
		Name      string       `xml:"artifactId"`
		Version   string       `xml:"version"`
		Packaging string       `xml:"packaging"`
		Managed   []dependency `xml:"dependencyManagement>dependencies>dependency,omitempty"`
		Needs     []dependency `xml:"dependencies>dependency"`
	}
)

// pom returns the project as a pom.
func (p Project) pom() ([]byte, error) {
	out := project{Model: "4.0.0", Group: "zklock", Name: "jars", Version: "1", Packaging: "pom"}
	if v := p.Versions; v != nil {
		out.Managed = []dependency{{Group: v.Group, Name: v.Name, Version: v.Version, Type: "pom", Scope: "import"}}
	}
	for _, a := range p.Artifacts {
		d := dependency{Group: a.Group, Name: a.Name, Version: a.Version}
		if a.Alone {
			d.Without = &without{"*", "*"}
		}
		out.Needs = append(out.Needs, d)
	}
	return xml.MarshalIndent(out, "", "  ")
}

// failure is an error of mvn.
type failure struct {
	what Project
	text string // what mvn printed, without addresses
	err  error
}

// Error implements error.
func (f *failure) Error() string {
	line, _, _ := strings.Cut(f.text, "\n")
	return fmt.Sprintf("maven: fetch %s: %v: %s", f.what, f.err, line)
}

// Unwrap returns the error of the process, or ErrNoVersion.
func (f *failure) Unwrap() error { return f.err }

// addresses are where mvn fetches from. They may have credentials.
var addresses = regexp.MustCompile(`https?://[^\s)>\]]+`)

// explain makes an error of what mvn has printed.
func explain(p Project, out []byte, err error) error {
	text := addresses.ReplaceAllString(string(bytes.TrimSpace(out)), "(source)")
	text = strings.ReplaceAll(text, "[ERROR] ", "")
	if strings.Contains(text, "No versions available for") {
		err = ErrNoVersion
	}
	return &failure{p, text, err}
}

// unavailable returns the version that mvn could not fetch, if its output has one.
func unavailable(err error, name string) string {
	var f *failure
	if !errors.As(err, &f) {
		return ""
	}
	m := regexp.MustCompile(`:(?:` + regexp.QuoteMeta(name) + `|parent):(?:jar|pom):([0-9][^\s:,)]*)`).FindStringSubmatch(f.text)
	if m == nil {
		return ""
	}
	return m[1]
}
