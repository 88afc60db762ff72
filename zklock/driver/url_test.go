package driver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock/driver"
)

// A Secret stays secret inside other values: printing a value that contains one must not
// show the text, although package fmt calls no methods of unexported fields.
func TestSecretIsNotShown(t *testing.T) {
	const canary = "hunter2"
	secret := driver.NewSecret(canary)
	if secret.Reveal() != canary || secret.IsZero() {
		t.Fatalf("Reveal returns %q, IsZero is %t", secret.Reveal(), secret.IsZero())
	}
	url := driver.URL{Scheme: "zk", User: "al", Password: secret}
	type inside struct {
		secret driver.Secret
		url    driver.URL
		any    any
	}
	in := inside{secret, url, secret}
	for _, v := range []any{secret, &secret, url, &url, in, &in, []driver.Secret{secret}, map[string]driver.URL{"a": url}, struct{ S driver.Secret }{secret}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10v"} {
			if out := fmt.Sprintf(verb, v); strings.Contains(out, canary) || strings.Contains(strings.ToLower(out), fmt.Sprintf("%x", canary)) {
				t.Errorf("%s of %T: %s", verb, v, out)
			}
		}
		out, err := json.Marshal(v)
		if err != nil || bytes.Contains(out, []byte(canary)) {
			t.Errorf("JSON of %T: %s, %v", v, out, err)
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
		if strings.Contains(log.String(), canary) {
			t.Errorf("log of %T: %s", v, log.String())
		}
		func() {
			defer func() {
				if out := fmt.Sprint(recover()); strings.Contains(out, canary) {
					t.Errorf("panic with %T: %s", v, out)
				}
			}()
			panic(v)
		}()
	}
	if out := fmt.Sprint(secret); out != "REDACTED" {
		t.Errorf("a secret prints as %q", out)
	}
}

func TestEmptySecretIsZero(t *testing.T) {
	for _, s := range []driver.Secret{{}, driver.NewSecret("")} {
		if !s.IsZero() || s.Reveal() != "" {
			t.Errorf("an empty secret: IsZero is %t, Reveal returns %q", s.IsZero(), s.Reveal())
		}
	}
}
