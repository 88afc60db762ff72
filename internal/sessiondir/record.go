package sessiondir

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Ensemble names servers, as a URL does. The fields are those of [driver.URL].
type Ensemble struct {
	Scheme string
	Hosts  []string
	User   string            `json:",omitempty"`
	Params map[string]string `json:",omitempty"`
}

// fileKeys are the keys whose values are paths of files.
var fileKeys = []string{"password_file", "tls_ca", "tls_cert", "tls_key"}

// ensembleOf returns the ensemble of a URL as another process can use it: paths of files are absolute. A
// user without a password file is left out, and with it DIGEST-MD5: no password may be written. To end a
// session takes a user only at servers that demand it. Other mechanisms of SASL have their secrets elsewhere.
func ensembleOf(u driver.URL) Ensemble {
	e := Ensemble{Scheme: u.Scheme, Hosts: u.Hosts, User: u.User, Params: make(map[string]string, len(u.Params))}
	for k := range u.Params {
		v := u.Params.Get(k)
		if slices.Contains(fileKeys, k) && v != "" {
			if abs, err := filepath.Abs(v); err == nil {
				v = abs
			}
		}
		e.Params[k] = v
	}
	if _, has := e.Params["password_file"]; !has && (e.Params["sasl"] == "" || e.Params["sasl"] == "digest-md5") {
		e.User = ""
		delete(e.Params, "auth_plaintext")
		delete(e.Params, "sasl")
	}
	return e
}

// key returns a short text that is the same for the same servers, in whatever order.
func (e Ensemble) key() string {
	hosts := slices.Sorted(slices.Values(e.Hosts))
	sum := sha256.Sum256([]byte(e.Scheme + "://" + strings.Join(hosts, ",")))
	return hex.EncodeToString(sum[:6])
}

// record is the content of a file: what ends a session, and whose it is.
type record struct {
	Ensemble  Ensemble
	Session   int64
	Password  []byte
	Timeout   time.Duration
	LossDelay time.Duration
	Process   process
	Directory string // the absolute path of the directory
	Device    uint64 // of the file itself: a snapshot and the parts of an overlay have their own
	Inode     uint64 // of the file itself
}

// header is the first line of a file, with the version of its format.
const header = "zklock session 1\n"

// maxRecord is more than a record has.
const maxRecord = 64 << 10

var (
	errForeign = errors.New("it is not a session file of this version of zklock")
	errTorn    = errors.New("it is torn")
	errCopied  = errors.New("it is a copy, or was renamed")
)

// encode returns the content of a file: the header, a line of JSON, and a line with its checksum.
func (r record) encode() ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf([]byte(header), "%s\n%08x\n", body, crc32.ChecksumIEEE(body)), nil
}

// decode is the opposite of encode. Its errors hold nothing of the content.
func decode(data []byte) (r record, err error) {
	rest, ok := bytes.CutPrefix(data, []byte(header))
	if !ok {
		return record{}, errForeign
	}
	body, sum, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || string(sum) != fmt.Sprintf("%08x\n", crc32.ChecksumIEEE(body)) {
		return record{}, errTorn
	}
	if json.Unmarshal(body, &r) != nil || r.Session == 0 || r.Timeout <= 0 || r.LossDelay < 0 {
		return record{}, errForeign
	}
	return r, nil
}

// credentials returns what ends the session.
func (r record) credentials() driver.Credentials {
	return driver.Credentials{ID: r.Session, Password: driver.NewSecret(string(r.Password)), Timeout: r.Timeout}
}

// The files of a directory are named by the ensemble, so that a client opens those of its own only.
const (
	suffixLive   = ".session"              // the process uses the session, if it lives
	suffixOver   = ".over"                 // the process has given the session up
	suffixWatch  = ".watch"                // the FIFO of one of the two clients that watch
	suffixSecond = ".second" + suffixWatch // that of the other one
	prefixNew    = ".new-"                 // a file that has no name yet
)

// name returns the name of the session's file.
func (r record) name() string {
	return fmt.Sprintf("%s-%016x%s", r.Ensemble.key(), uint64(r.Session), suffixLive)
}

// overName returns the name of the session's file after its process has given the session up.
func (r record) overName() string { return strings.TrimSuffix(r.name(), suffixLive) + suffixOver }

// isSession reports whether a file has the name of a session's file.
func isSession(name string) bool {
	return strings.HasSuffix(name, suffixLive) || strings.HasSuffix(name, suffixOver)
}
