package kerberos

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"

	"github.com/zklock/go-zklock/zklock/driver"
)

const (
	// kdcTimeout bounds the exchange with one KDC, so that another one can be asked.
	kdcTimeout = 3 * time.Second

	// maxReply is more than the length of a KDC's reply.
	maxReply = 1 << 20
)

// kdc sends requests to the KDCs of realms. The library's own client cannot be interrupted, hides
// when tickets expire, and renews them only afterwards.
type kdc struct{ cfg *configuration }

// unanswered is the error of a request that no KDC has answered.
type unanswered struct{ error }

// Unwrap returns the reason.
func (e unanswered) Unwrap() error { return e.error }

// send sends a request to the KDCs of a realm, one after the other, until one answers. It uses
// TCP, which all KDCs speak. An error answer of a KDC is a messages.KRBError.
func (k *kdc) send(ctx context.Context, realm string, request []byte) ([]byte, error) {
	addrs, err := k.addrs(ctx, realm)
	if err != nil {
		return nil, unanswered{err}
	}
	var failed []error
	for _, addr := range addrs {
		reply, err := ask(ctx, addr, request)
		if err != nil && ctx.Err() != nil {
			return nil, unanswered{fmt.Errorf("no KDC of realm %s has answered yet: %w", realm, ctx.Err())}
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		return reply, readRefusal(reply)
	}
	// Each server of the ensemble meets the same, and one text is shown once.
	slices.SortFunc(failed, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	all := failed[0]
	for _, err := range failed[1:] {
		all = fmt.Errorf("%w; %w", all, err)
	}
	return nil, unanswered{fmt.Errorf("no KDC of realm %s answers: %w", realm, all)}
}

// addrs returns the addresses of the KDCs of a realm, in the order in which they are asked.
func (k *kdc) addrs(ctx context.Context, realm string) (addrs []string, err error) {
	for _, r := range k.cfg.Realms {
		if r.Realm == realm {
			addrs = append(addrs, r.KDC...)
		}
	}
	if len(addrs) == 0 && k.cfg.LibDefaults.DNSLookupKDC {
		return k.addrsInDNS(ctx, realm)
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("%s has no KDC of realm %s (%w)", k.cfg.file, realm, driver.ErrAuthFailed)
	}
	for i, addr := range addrs {
		// The library has added the port to names, but not to addresses of IPv6.
		if _, _, err := net.SplitHostPort(addr); err != nil {
			addrs[i] = net.JoinHostPort(strings.Trim(addr, "[]"), "88")
		}
	}
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	return addrs, nil
}

// addrsInDNS returns the addresses of the KDCs that DNS names for a realm.
func (k *kdc) addrsInDNS(ctx context.Context, realm string) (addrs []string, err error) {
	_, records, err := net.DefaultResolver.LookupSRV(ctx, "kerberos", "tcp", realm)
	for _, r := range records {
		if host := strings.TrimSuffix(r.Target, "."); host != "" { // "." means that there is none
			addrs = append(addrs, net.JoinHostPort(host, strconv.Itoa(int(r.Port))))
		}
	}
	switch {
	case len(addrs) > 0:
		return addrs, nil
	case err == nil || missing(err):
		return nil, fmt.Errorf("neither %s nor DNS has a KDC of realm %s (%w)", k.cfg.file, realm, driver.ErrAuthFailed)
	}
	return nil, fmt.Errorf("%s has no KDC of realm %s, and DNS has not answered: %w", k.cfg.file, realm, err)
}

// readRefusal returns a KDC's error answer; nil if a reply is another one.
func readRefusal(reply []byte) error {
	var refusal messages.KRBError
	if guard(func() error { return refusal.Unmarshal(reply) }) == nil {
		return refusal
	}
	return nil
}

// refusalCode returns the code of a KDC's error answer; 0 if an error is another one.
func refusalCode(err error) int32 {
	var refusal messages.KRBError
	_ = errors.As(err, &refusal)
	return refusal.ErrorCode
}

// ask sends a request to one KDC and returns the reply. The text of an error is the same for each connection.
func ask(ctx context.Context, addr string, request []byte) (reply []byte, err error) {
	defer func() {
		var op *net.OpError
		if errors.As(err, &op) && op.Source != nil { // with a port that is another one each time
			err = fmt.Errorf("KDC %s: %s: %w", addr, op.Op, op.Err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, kdcTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)); err != nil {
		return nil, err
	}
	var prefix [4]byte
	if _, err := io.ReadFull(conn, prefix[:]); err != nil {
		return nil, fmt.Errorf("KDC %s: %w", addr, err)
	}
	length := binary.BigEndian.Uint32(prefix[:])
	if length > maxReply {
		return nil, fmt.Errorf("KDC %s: a reply of %d bytes", addr, length)
	}
	reply = make([]byte, length)
	if _, err := io.ReadFull(conn, reply); err != nil {
		return nil, fmt.Errorf("KDC %s: %w", addr, err)
	}
	return reply, nil
}

// passing are the errors of a KDC that may be gone at the next attempt.
var passing = []int32{errorcode.KDC_ERR_SVC_UNAVAILABLE, errorcode.KRB_ERR_GENERIC, errorcode.KDC_ERR_CLIENT_NOTYET, errorcode.KDC_ERR_SERVICE_NOTYET}

// adviceKey is what an administrator does about an old keytab.
const adviceKey = "its key in the keytab is not the one that the KDC has: export the keytab again"

// adviceClocks is what an administrator does about clocks.
func (k *kdc) adviceClocks() string {
	return fmt.Sprintf("the clocks of this machine and the KDC differ by more than clockskew in %s allows, five minutes by default: set them", k.cfg.file)
}

// explain adds to an error answer of a KDC what it means for a principal, and what to do.
func (k *kdc) explain(err error, about principal) error {
	var refusal messages.KRBError
	if !errors.As(err, &refusal) {
		return err
	}
	if slices.Contains(passing, refusal.ErrorCode) {
		return fmt.Errorf("the KDC refuses %v for now: %w", about, refusal)
	}
	hint := "look at the KDC's log"
	switch refusal.ErrorCode {
	case errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN:
		hint = "the KDC does not know this principal"
	case errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN:
		hint = "the KDC does not know this principal: if it is that of a server, its host is the canonical name of the host in the URL; compare it with the server's keytab"
	case errorcode.KDC_ERR_PREAUTH_FAILED, errorcode.KRB_AP_ERR_BAD_INTEGRITY:
		hint = adviceKey
	case errorcode.KRB_AP_ERR_SKEW:
		hint = k.adviceClocks()
	case errorcode.KRB_AP_ERR_TKT_EXPIRED:
		hint = "the ticket has expired: run kinit again"
	case errorcode.KDC_ERR_ETYPE_NOSUPP:
		hint = "it has no AES key, and RC4 is not supported: " + adviceAES
	case errorcode.KDC_ERR_CLIENT_REVOKED, errorcode.KDC_ERR_KEY_EXPIRED, errorcode.KDC_ERR_NAME_EXP:
		hint = "the principal is locked or has expired"
	}
	return fmt.Errorf("the KDC refuses %v: %w: %s (%w)", about, refusal, hint, driver.ErrAuthFailed)
}
