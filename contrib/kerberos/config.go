package kerberos

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // RFC 3962 has it
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
)

// defaultConfig is where the systems' packages have the configuration.
const defaultConfig = "/etc/krb5.conf"

// aesTypes are the types of keys that are asked for, the best first.
var aesTypes = usable([]int32{
	etypeID.AES256_CTS_HMAC_SHA384_192, etypeID.AES128_CTS_HMAC_SHA256_128,
	etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA1_96,
})

// adviceAES is what an administrator does about another type.
var adviceAES = "give the principals AES keys, as in kadmin: ktadd -e aes256-cts-hmac-sha1-96:normal PRINCIPAL"

// usable returns the types that this process can use: with GODEBUG=fips140=only it panics if it uses SHA-1.
func usable(all []int32) (usable []int32) {
	defer func() {
		if recover() != nil {
			usable = all[:2]
			adviceAES = "GODEBUG=fips140=only allows keys of SHA-2 only, as in kadmin: ktadd -e aes256-cts-hmac-sha384-192:normal PRINCIPAL"
		}
	}()
	hmac.New(sha1.New, make([]byte, sha1.Size))
	return all
}

func isAES(keyType int32) bool { return slices.Contains(aesTypes, keyType) }

// keyType names a type of key.
func keyType(id int32) string {
	switch id {
	case etypeID.RC4_HMAC:
		return "23 (RC4)"
	case etypeID.DES3_CBC_SHA1_KD:
		return "16 (triple DES)"
	}
	return fmt.Sprint(id)
}

// fallback matches a value that MIT Kerberos 1.18 added and that the file of Fedora and Red Hat has: take
// the host as given, and its canonical name if the KDC does not know that. The library refuses it, so it
// is read as false.
var fallback = regexp.MustCompile(`(?mi)^([ \t]*dns_canonicalize_hostname[ \t]*=[ \t]*)fallback[ \t\r]*$`)

// configuration is what a krb5.conf has.
type configuration struct {
	*config.Config
	file string // its path, for messages
}

// load reads the configuration. It is read for each connection, so it can be changed.
func (s *settings) load() (*configuration, error) {
	file := s.file
	named := os.Getenv("KRB5_CONFIG")
	for _, f := range filepath.SplitList(named) {
		if _, err := os.Stat(f); file == "" && err == nil {
			file = f
		}
	}
	switch {
	case file == "" && named != "": // another file would have another realm
		return nil, fmt.Errorf("the configuration of Kerberos: KRB5_CONFIG names no file that can be found: %s", named)
	case file == "":
		file = defaultConfig
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the configuration of Kerberos: %w", err)
	}
	cfg, err := config.NewFromString(fallback.ReplaceAllString(string(text), "${1}false"))
	var unsupported config.UnsupportedDirective
	if err != nil && !errors.As(err, &unsupported) {
		return nil, fmt.Errorf("the configuration of Kerberos, %s (include and includedir are not supported): %w", file, err)
	}
	usual := config.New().LibDefaults
	cfg.LibDefaults.DefaultTktEnctypeIDs = aesOf(cfg.LibDefaults.DefaultTktEnctypeIDs, usual.DefaultTktEnctypeIDs)
	cfg.LibDefaults.DefaultTGSEnctypeIDs = aesOf(cfg.LibDefaults.DefaultTGSEnctypeIDs, usual.DefaultTGSEnctypeIDs)
	return &configuration{cfg, file}, nil
}

// aesOf returns the AES types of a list that the configuration has; all of them if the list is
// the usual one, or has none.
func aesOf(list, usual []int32) []int32 {
	chosen := slices.DeleteFunc(slices.Clone(list), func(id int32) bool { return !isAES(id) })
	if len(chosen) == 0 || slices.Equal(list, usual) {
		return aesTypes
	}
	return chosen
}

// cacheFile returns the name of the file of a credential cache.
func cacheFile(name string) (string, error) {
	if name == "" {
		name = os.Getenv("KRB5CCNAME")
	}
	if name == "" {
		name = fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid())
	}
	kind, rest, ok := strings.Cut(name, ":")
	switch {
	case !ok || strings.Contains(kind, "/"):
		return name, nil
	case kind == "FILE":
		return rest, nil
	}
	return "", fmt.Errorf("credential caches of type %s are not supported: use one of type FILE, as in KRB5CCNAME=FILE:/path", kind)
}
