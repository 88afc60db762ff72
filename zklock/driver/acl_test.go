package driver_test

import (
	"reflect"
	"testing"

	"github.com/zklock/go-zklock/zklock/driver"
)

func TestParseACL(t *testing.T) {
	for text, want := range map[string][]driver.ACL{
		"open":                    driver.OpenACL(driver.PermAll),
		"creator":                 driver.CreatorACL(driver.PermAll),
		"sasl:svc:cdrwa":          {{Perms: driver.PermAll, Scheme: "sasl", ID: "svc"}},
		"digest:al:aGFzaA==:rw":   {{Perms: driver.PermRead | driver.PermWrite, Scheme: "digest", ID: "al:aGFzaA=="}},
		"ip:10.0.0.1:r,auth::dca": {{Perms: driver.PermRead, Scheme: "ip", ID: "10.0.0.1"}, {Perms: driver.PermDelete | driver.PermCreate | driver.PermAdmin, Scheme: "auth"}},
		"":                        nil,
		"all":                     nil,
		"sasl:svc":                nil,
		"sasl:svc:":               nil,
		"sasl:svc:x":              nil,
		":svc:r":                  nil,
		"sasl:svc:r,":             nil,
		"sasl:svc:r, sasl:b:r":    {{Perms: driver.PermRead, Scheme: "sasl", ID: "svc"}, {Perms: driver.PermRead, Scheme: "sasl", ID: "b"}},
	} {
		got, err := driver.ParseACL(text)
		if !reflect.DeepEqual(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}
