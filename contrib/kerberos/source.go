package kerberos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/zklock/go-zklock/zklock/driver"
)

// source is where ticket-granting tickets come from. Its methods are not called concurrently.
type source interface {
	// grant returns a ticket-granting ticket. old is the one that it returned before; nil if
	// there is none. It returns old if that is valid and there is no newer one.
	grant(ctx context.Context, k *kdc, old *ticket) (*ticket, error)
}

// keytabSource has the client's keys.
type keytabSource struct {
	principal string // "": the first one in the file; after the first ticket, that of the ticket
	file      string
}

func (s *keytabSource) grant(ctx context.Context, k *kdc, old *ticket) (*ticket, error) {
	now := time.Now()
	if old != nil && now.Before(old.renew) {
		return old, nil
	}
	t, err := s.initial(ctx, k)
	if err != nil && old != nil && now.Before(old.end) {
		return old, nil
	}
	return t, err
}

func (s *keytabSource) initial(ctx context.Context, k *kdc) (*ticket, error) {
	keys, err := loadKeytab(s.file)
	if err != nil {
		return nil, err
	}
	text := s.principal
	if text == "" {
		if len(keys.Entries) == 0 {
			return nil, fmt.Errorf("keytab %s is empty (%w)", s.file, driver.ErrAuthFailed)
		}
		first := keys.Entries[0].Principal
		text = types.PrincipalName{NameString: first.Components}.PrincipalNameString() + "@" + first.Realm
	}
	client, err := parsePrincipal(text, k.cfg)
	if err != nil {
		return nil, err
	}
	t, err := k.initial(ctx, client, keys)
	if err != nil {
		return nil, fmt.Errorf("keytab %s: %w", s.file, err)
	}
	s.principal = client.String()
	return t, nil
}

func loadKeytab(file string) (*keytab.Keytab, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the keytab: %w", err)
	}
	return parseKeytab(file, b)
}

func parseKeytab(file string, b []byte) (*keytab.Keytab, error) {
	keys := keytab.New()
	if err := guard(func() error { return keys.Unmarshal(b) }); err != nil {
		// The library's error has the bytes of the file, and so the keys: it is not shown.
		return nil, fmt.Errorf("keytab %s is malformed, or is being written", file)
	}
	for i := range keys.Entries {
		// Of several keys, the library takes the one with the latest time, and the newest may have the
		// same time as others, or none: the version decides.
		keys.Entries[i].Timestamp = time.Unix(int64(keys.Entries[i].KVNO), 0)
	}
	return keys, nil
}

// cacheSource has tickets that another program has fetched.
type cacheSource struct {
	file      string
	principal string // of all tickets; "": that of the first one
}

func (s *cacheSource) grant(ctx context.Context, k *kdc, old *ticket) (*ticket, error) {
	now := time.Now()
	if old != nil && now.Before(old.renew) {
		return old, nil
	}
	t, err := loadCache(s.file)
	if err == nil && s.principal != "" && s.principal != t.client.String() {
		err = fmt.Errorf("the credential cache is of %v now, and the client is %s: run kinit for that one, or use a cache of its own (%w)", t.client, s.principal, driver.ErrAuthFailed)
	}
	if err != nil {
		if old != nil && now.Before(old.end) {
			return old, nil
		}
		return nil, err
	}
	s.principal = t.client.String()
	if old != nil && old.end.After(t.end) {
		t = old // it was renewed here
	}
	if !now.Before(t.end) {
		return nil, fmt.Errorf("the tickets of %v in the credential cache have expired at %s: run kinit again (%w)", t.client, t.end.Format(time.RFC3339), driver.ErrAuthFailed)
	}
	if now.Before(t.renew) || !now.Before(t.till) {
		return t, nil
	}
	if newer, err := k.renewed(ctx, t); err == nil && newer.end.After(t.end) {
		return newer, nil
	}
	return t, nil
}

// loadCache reads the ticket-granting ticket of a credential cache.
func loadCache(name string) (*ticket, error) {
	file, err := cacheFile(name)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the credential cache: %w: run kinit; if klist shows another cache, set KRB5CCNAME=FILE:/path for kinit and for this program", err)
	}
	return parseCache(file, b)
}

func parseCache(file string, b []byte) (*ticket, error) {
	var cache credentials.CCache
	// A program that renews the tickets may be writing the file at this moment.
	if err := guard(func() error { return cache.Unmarshal(b) }); err != nil {
		return nil, fmt.Errorf("credential cache %s is malformed: %w", file, err)
	}
	client := principal{cache.DefaultPrincipal.PrincipalName, cache.DefaultPrincipal.Realm}
	client.name.NameType = nametype.KRB_NT_PRINCIPAL
	tgs := grantingService(client.realm, client.realm)
	for i := len(cache.Credentials) - 1; i >= 0; i-- { // the newest is the last one
		c := cache.Credentials[i]
		if c.Server.Realm != tgs.realm || !c.Server.PrincipalName.Equal(tgs.name) {
			continue
		}
		t := &ticket{client: client, key: c.Key, end: c.EndTime, till: c.RenewTill, renew: renewal(c.StartTime, c.AuthTime, c.EndTime)}
		if err := t.ticket.Unmarshal(c.Ticket); err != nil {
			return nil, fmt.Errorf("credential cache %s: %w", file, err)
		}
		if !isAES(t.key.KeyType) {
			return nil, fmt.Errorf("the ticket of %v in credential cache %s has a key of type %s, and only AES is supported: %s (%w)", client, file, keyType(t.key.KeyType), adviceAES, driver.ErrAuthFailed)
		}
		return t, nil
	}
	return nil, fmt.Errorf("credential cache %s has no ticket-granting ticket of %v: run kinit (%w)", file, client, driver.ErrAuthFailed)
}

// guard makes an error of a panic: the library trusts the lengths in what it reads.
func guard(parse func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("it ends too early")
		}
	}()
	return parse()
}
