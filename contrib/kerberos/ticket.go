package kerberos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/krberror"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/zklock/go-zklock/zklock/driver"
)

// ticket is a ticket of the client, for a server or for a realm's ticket-granting service. Only
// again and doubtful change.
type ticket struct {
	client principal
	ticket messages.Ticket
	key    types.EncryptionKey
	got    time.Time // from the KDC
	end    time.Time // it expires
	renew  time.Time // it is to be renewed from then on
	till   time.Time // it can be renewed until then; zero: it cannot

	// again is set when a ticket was to be renewed and could not be: not before then. It is guarded by
	// Mechanism.mu.
	again time.Time

	// doubtful is set while a server that was sent the ticket has not accepted it. A server that
	// refuses a ticket does not say so: the connection ends.
	doubtful atomic.Bool
}

// newTicket returns a ticket with what the KDC's reply says about it.
func newTicket(client principal, t messages.Ticket, p messages.EncKDCRepPart) *ticket {
	n := &ticket{client: client, ticket: t, key: p.Key, got: time.Now(), end: p.EndTime, till: p.RenewTill}
	n.renew = renewal(p.StartTime, p.AuthTime, n.end)
	return n
}

// renewal returns when a ticket is to be renewed: when four fifths of its life are over.
func renewal(start, authenticated, end time.Time) time.Time {
	if start.IsZero() || start.Unix() == 0 {
		start = authenticated
	}
	return end.Add(-end.Sub(start) / 5)
}

// grantingService returns the principal of the ticket-granting service of a realm, for clients
// of another one or of the same.
func grantingService(realm, of string) principal {
	return principal{types.PrincipalName{NameType: nametype.KRB_NT_SRV_INST, NameString: []string{"krbtgt", of}}, realm}
}

// initial returns a ticket-granting ticket for a client whose keys are in a keytab.
func (k *kdc) initial(ctx context.Context, client principal, keys *keytab.Keytab) (*ticket, error) {
	request, err := messages.NewASReqForTGT(client.realm, k.cfg.Config, client.name)
	if err != nil {
		return nil, err
	}
	request.ReqBody.EType = typesIn(keys, client, request.ReqBody.EType)
	if len(request.ReqBody.EType) == 0 {
		if others := principalsIn(keys, client); len(others) > 0 {
			return nil, fmt.Errorf("the keytab has no key of %v, only of %s: correct the user of the client, default_realm in %s, or the keytab (%w)", client, strings.Join(others, ", "), k.cfg.file, driver.ErrAuthFailed)
		}
		return nil, fmt.Errorf("the keytab has no AES key of %v: %s (%w)", client, adviceAES, driver.ErrAuthFailed)
	}
	reply, err := k.exchange(ctx, client.realm, &request)
	var refusal messages.KRBError
	if errors.As(err, &refusal) && refusal.ErrorCode == errorcode.KDC_ERR_PREAUTH_REQUIRED {
		if err = preauthenticate(&request, client, keys, refusal); err == nil {
			reply, err = k.exchange(ctx, client.realm, &request)
		}
	}
	if err != nil {
		return nil, k.explain(err, client)
	}
	return k.readInitial(client, keys, request, reply)
}

// readInitial returns the ticket in a KDC's reply.
func (k *kdc) readInitial(client principal, keys *keytab.Keytab, request messages.ASReq, reply []byte) (*ticket, error) {
	var granted messages.ASRep
	if err := guard(func() error { return granted.Unmarshal(reply) }); err != nil {
		return nil, fmt.Errorf("the KDC's reply for %v: %w", client, err)
	}
	creds := credentials.NewFromPrincipalName(client.name, client.realm).WithKeytab(keys)
	if err := guard(func() error { return verified(granted.Verify(k.cfg.Config, creds, request)) }); err != nil {
		return nil, k.explainReply(err, client, granted.DecryptedEncPart.AuthTime)
	}
	return newTicket(client, granted.Ticket, granted.DecryptedEncPart), nil
}

// explainReply adds to the error of the first reply for a client what to do. A KDC that demands no
// pre-authentication does not notice an old key or another time: the client does.
func (k *kdc) explainReply(err error, client principal, at time.Time) error {
	hint := ""
	var e krberror.Krberror
	switch {
	case errors.As(err, &e) && e.RootCause == krberror.DecryptingError:
		hint = adviceKey
	case !at.IsZero() && time.Since(at).Abs() > k.cfg.LibDefaults.Clockskew:
		hint = k.adviceClocks()
	default:
		return fmt.Errorf("the KDC's reply for %v does not fit: %w", client, err)
	}
	return fmt.Errorf("the KDC's reply for %v does not fit: %s (%w)", client, hint, driver.ErrAuthFailed)
}

// marshaler is a request of the library.
type marshaler interface{ Marshal() ([]byte, error) }

func (k *kdc) exchange(ctx context.Context, realm string, request marshaler) ([]byte, error) {
	b, err := request.Marshal()
	if err != nil {
		return nil, err
	}
	return k.send(ctx, realm, b)
}

// principalsIn returns the principals that a keytab has keys of; none if the client is among them.
func principalsIn(keys *keytab.Keytab, client principal) (names []string) {
	for _, e := range keys.Entries {
		name := strings.Join(e.Principal.Components, "/") + "@" + e.Principal.Realm
		if name == client.String() {
			return nil
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// typesIn returns those of the types that the keytab has keys of.
func typesIn(keys *keytab.Keytab, client principal, wanted []int32) (have []int32) {
	for _, id := range wanted {
		if _, _, err := keys.GetEncryptionKey(client.name, client.realm, 0, id); err == nil {
			have = append(have, id)
		}
	}
	return have
}

// preauthenticate adds the proof that the client has its key, in the type that the KDC names
// first among those that the keytab has.
func preauthenticate(request *messages.ASReq, client principal, keys *keytab.Keytab, refusal messages.KRBError) error {
	var hints types.PADataSequence
	id := request.ReqBody.EType[0]
	if err := hints.Unmarshal(refusal.EData); err == nil {
		for _, pa := range hints {
			if pa.PADataType != patype.PA_ETYPE_INFO2 {
				continue
			}
			info, err := pa.GetETypeInfo2()
			if err != nil {
				return err
			}
			for _, entry := range info {
				if _, _, err := keys.GetEncryptionKey(client.name, client.realm, 0, entry.EType); err == nil && isAES(entry.EType) {
					id = entry.EType
					break
				}
			}
		}
	}
	key, version, err := keys.GetEncryptionKey(client.name, client.realm, 0, id)
	if err != nil {
		return err
	}
	stamp, err := types.GetPAEncTSEncAsnMarshalled()
	if err != nil {
		return err
	}
	sealed, err := crypto.GetEncryptedData(stamp, key, keyusage.AS_REQ_PA_ENC_TIMESTAMP, version)
	if err != nil {
		return err
	}
	value, err := sealed.Marshal()
	if err != nil {
		return err
	}
	request.PAData = types.PADataSequence{{PADataType: patype.PA_ENC_TIMESTAMP, PADataValue: value}}
	return nil
}

// maxReferrals bounds the realms between the client and a server.
const maxReferrals = 5

// serviceTicket returns a ticket for a server. If the server is of another realm, the KDCs on the
// way there grant tickets for each other's services.
func (k *kdc) serviceTicket(ctx context.Context, tgt *ticket, server principal) (*ticket, error) {
	at := tgt.client.realm
	for range maxReferrals + 1 {
		wanted := principal{server.name, at}
		if at != server.realm {
			wanted = grantingService(at, server.realm)
		}
		t, err := k.further(ctx, tgt, wanted, false)
		switch {
		case errors.As(err, new(unanswered)): // that is the same for each server, and is shown once if the texts are the same
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("no ticket for %v: %w", server, k.explain(err, wanted))
		}
		got := t.ticket.SName
		switch {
		case got.Equal(wanted.name) && at == server.realm:
			return t, nil
		case len(got.NameString) == 2 && got.NameString[0] == "krbtgt" && got.NameString[1] != at:
			at, tgt = got.NameString[1], t
		default:
			return nil, fmt.Errorf("no ticket for %v: the KDC of %s granted one for %s", server, at, got.PrincipalNameString())
		}
	}
	return nil, fmt.Errorf("there are more than %d realms on the way to %v", maxReferrals, server)
}

// renewed returns the ticket-granting ticket with a later end.
func (k *kdc) renewed(ctx context.Context, tgt *ticket) (*ticket, error) {
	realm := tgt.client.realm
	t, err := k.further(ctx, tgt, grantingService(realm, realm), true)
	return t, k.explain(err, tgt.client)
}

// verified returns the error of a check of the library.
func verified(ok bool, err error) error {
	if err == nil && !ok {
		err = errors.New("not verified")
	}
	return err
}

// further asks a realm's ticket-granting service for a ticket.
func (k *kdc) further(ctx context.Context, tgt *ticket, wanted principal, renew bool) (*ticket, error) {
	request, err := messages.NewTGSReq(tgt.client.name, wanted.realm, k.cfg.Config, tgt.ticket, tgt.key, wanted.name, renew)
	if err != nil {
		return nil, err
	}
	reply, err := k.exchange(ctx, wanted.realm, &request)
	if err != nil {
		return nil, err
	}
	return k.readFurther(tgt, wanted, request, reply)
}

// readFurther returns the ticket in a ticket-granting service's reply.
func (k *kdc) readFurther(tgt *ticket, wanted principal, request messages.TGSReq, reply []byte) (*ticket, error) {
	var granted messages.TGSRep
	if err := guard(func() error { return granted.Unmarshal(reply) }); err != nil {
		return nil, fmt.Errorf("the KDC's reply for %v: %w", wanted, err)
	}
	if err := guard(func() error { return granted.DecryptEncPart(tgt.key) }); err != nil {
		return nil, fmt.Errorf("the KDC's reply for %v: %w", wanted, err)
	}
	if err := verified(granted.Verify(k.cfg.Config, request)); err != nil {
		return nil, fmt.Errorf("the KDC's reply for %v does not fit: %w", wanted, err)
	}
	// The library does not compare the name that the KDC has signed.
	if !granted.DecryptedEncPart.SName.Equal(granted.Ticket.SName) {
		return nil, fmt.Errorf("the KDC's reply for %v names another server", wanted)
	}
	return newTicket(tgt.client, granted.Ticket, granted.DecryptedEncPart), nil
}
