package kerberos

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// exchange implements zkdriver.Exchange. It has three round trips: the client shows its ticket and the server
// shows that it could read the ticket; the server offers security layers; the client chooses none.
type exchange struct {
	ticket *ticket

	steps         int
	authenticator types.Authenticator
	subkey        *types.EncryptionKey // the server's; nil if it has chosen none
}

// Flags of a context (RFC 4121, 4.1.1). Without the flag for sequences, servers do not compare
// the numbers of tokens.
const (
	contextMutual    = 2
	contextIntegrity = 32
)

// noSecurityLayer is the only layer that ZooKeeper has.
const noSecurityLayer = 1

// Step implements zkdriver.Exchange.
func (x *exchange) Step(challenge []byte) ([]byte, bool, error) {
	x.steps++
	switch x.steps {
	case 1:
		response, err := x.request()
		return response, false, err
	case 2:
		return []byte{}, false, x.verify(challenge)
	case 3:
		response, err := x.choose(challenge)
		return response, true, err
	}
	return nil, false, errors.New("the server goes on after the end")
}

// request returns the token with the ticket.
func (x *exchange) request() ([]byte, error) {
	t := x.ticket
	a, err := types.NewAuthenticator(t.client.realm, t.client.name)
	if err != nil {
		return nil, err
	}
	sum := binary.LittleEndian.AppendUint32(nil, 16)
	sum = append(sum, make([]byte, 16)...) // no channel bindings
	sum = binary.LittleEndian.AppendUint32(sum, contextMutual|contextIntegrity)
	a.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: sum}
	x.authenticator = a
	r, err := messages.NewAPReq(t.ticket, t.key, a)
	if err != nil {
		return nil, err
	}
	types.SetFlag(&r.APOptions, flags.APOptionMutualRequired)
	b, err := r.Marshal()
	if err != nil {
		return nil, err
	}
	t.doubtful.Store(true)
	return frame(idRequest, b), nil
}

// verify checks that the server has read the authenticator, and so has the service's key.
func (x *exchange) verify(token []byte) error {
	if text := string(token[:min(len(token), 6)]); text == "realm=" || text == "nonce=" {
		// A server that has lost its own ticket, and its key with it, falls back to this.
		return errors.New("the server expects the mechanism DIGEST-MD5: its JAAS section Server is for that, or it could not renew its own Kerberos ticket, which isInitiator=false in that section makes unnecessary")
	}
	id, message, err := unframe(token)
	if err != nil {
		return err
	}
	switch id {
	case idReply:
	case idError:
		var refusal messages.KRBError
		if err := guard(func() error { return refusal.Unmarshal(message) }); err != nil {
			return errToken
		}
		return fmt.Errorf("the server refuses the ticket: %s", errorcode.Lookup(refusal.ErrorCode))
	default:
		return errToken
	}
	var reply messages.APRep
	if err := guard(func() error { return reply.Unmarshal(message) }); err != nil {
		return errToken
	}
	var plain []byte
	if err := guard(func() (err error) {
		plain, err = crypto.DecryptEncPart(reply.EncPart, x.ticket.key, keyusage.AP_REP_ENCPART)
		return err
	}); err != nil {
		return errors.New("the server has not proven its identity: its reply has another key")
	}
	var part messages.EncAPRepPart
	if err := part.Unmarshal(plain); err != nil {
		return errToken
	}
	if part.CTime.Unix() != x.authenticator.CTime.Unix() || part.Cusec != x.authenticator.Cusec {
		return errors.New("the server has not proven its identity: its reply is to another request")
	}
	x.ticket.doubtful.Store(false)
	if len(part.Subkey.KeyValue) > 0 {
		if !isAES(part.Subkey.KeyType) {
			return fmt.Errorf("the server has chosen a key of type %s, and only AES is supported", keyType(part.Subkey.KeyType))
		}
		x.subkey = &part.Subkey
	}
	return nil
}

// key returns the key of a token with these flags.
func (x *exchange) key(tokenFlags byte) types.EncryptionKey {
	if tokenFlags&flagSubkey != 0 && x.subkey != nil {
		return *x.subkey
	}
	return x.ticket.key
}

// choose answers the server's offer of security layers. It sends no name to act as: servers
// ignore it.
func (x *exchange) choose(token []byte) ([]byte, error) {
	offer, err := unwrap(token, x.key, keyusage.GSSAPI_ACCEPTOR_SEAL)
	if err != nil {
		return nil, err
	}
	if len(offer) != 4 || offer[0]&noSecurityLayer == 0 {
		return nil, errors.New("the server demands a security layer, which ZooKeeper does not have")
	}
	var own byte
	if x.subkey != nil {
		own = flagSubkey
	}
	return wrap([]byte{noSecurityLayer, 0, 0, 0}, x.key(own), own, uint64(x.authenticator.SeqNumber), keyusage.GSSAPI_INITIATOR_SEAL)
}
