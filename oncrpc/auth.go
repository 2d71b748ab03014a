package oncrpc

import (
	"fmt"

	"github.com/nfsbox/nfsbox/xdr"
)

// Authentication flavors (RFC 5531, section 8.2; RFC 2203; RFC 9289).
const (
	AuthNone      uint32 = 0 // no credential
	AuthSysFlavor uint32 = 1 // a user and groups, unproven: see AuthSys
	AuthShort     uint32 = 2 // a server's shorthand for AUTH_SYS
	AuthGSS       uint32 = 6 // RPCSEC_GSS
	AuthTLS       uint32 = 7 // asks whether the server has TLS
)

// Auth is a credential or a verifier, the opaque_auth of RFC 5531, section 8.2.
// The zero Auth is AUTH_NONE. Body holds at most [MaxAuthBody] bytes; in what
// was received it is borrowed.
type Auth struct {
	Flavor uint32
	Body   []byte
}

// check refuses a body above the protocol's bound.
func (a *Auth) check() error {
	return xdr.CheckLen("opaque_auth.body", len(a.Body), MaxAuthBody)
}

func (a *Auth) append(b []byte) []byte {
	b = xdr.AppendUint32(b, a.Flavor)
	return xdr.AppendOpaque(b, a.Body)
}

func (a *Auth) decode(d *xdr.Decoder) {
	a.Flavor = d.Uint32()
	a.Body = d.Opaque("opaque_auth.body", MaxAuthBody)
}

// startTLS is the verifier with which a server says that TLS may begin (RFC
// 9289, section 4.1).
var startTLS = [8]byte{'S', 'T', 'A', 'R', 'T', 'T', 'L', 'S'}

// AuthSys is the body of an AUTH_SYS credential, authsys_parms of RFC 5531,
// appendix A: who the client says that its user is. Nothing proves it.
type AuthSys struct {
	Stamp   uint32
	Machine string // at most MaxMachineName bytes
	UID     uint32
	GID     uint32
	GIDs    []uint32 // at most MaxGIDs
}

// Auth encodes a as a credential. It may be used for any number of calls.
func (a *AuthSys) Auth() (Auth, error) {
	body, err := a.AppendXDR(nil)
	if err != nil {
		return Auth{}, err
	}
	return Auth{Flavor: AuthSysFlavor, Body: body}, nil
}

// AppendXDR appends the credential's body.
func (a *AuthSys) AppendXDR(b []byte) ([]byte, error) {
	if err := xdr.CheckLen("authsys_parms.machinename", len(a.Machine), MaxMachineName); err != nil {
		return b, err
	}
	if err := xdr.CheckLen("authsys_parms.gids", len(a.GIDs), MaxGIDs); err != nil {
		return b, err
	}
	b = xdr.AppendUint32(b, a.Stamp)
	b = xdr.AppendUint32(b, uint32(len(a.Machine)))
	b = append(b, a.Machine...)
	b = xdr.AppendPad(b, len(a.Machine))
	b = xdr.AppendUint32(b, a.UID)
	b = xdr.AppendUint32(b, a.GID)
	b = xdr.AppendUint32(b, uint32(len(a.GIDs)))
	for _, g := range a.GIDs {
		b = xdr.AppendUint32(b, g)
	}
	return b, nil
}

// DecodeXDR reads a credential's body into a. It reuses the space of a.GIDs, and a.Machine
// if that is the same: an AuthSys that decodes one client's credentials again and again
// does not allocate.
func (a *AuthSys) DecodeXDR(d *xdr.Decoder) error {
	a.Stamp = d.Uint32()
	machine := d.Opaque("authsys_parms.machinename", MaxMachineName)
	if a.Machine != string(machine) {
		a.Machine = string(machine)
	}
	a.UID = d.Uint32()
	a.GID = d.Uint32()
	n := d.ArrayLen("authsys_parms.gids", MaxGIDs, 4)
	a.GIDs = a.GIDs[:0]
	for range n {
		a.GIDs = append(a.GIDs, d.Uint32())
	}
	return d.Err()
}

// Decode is DecodeXDR for a body that must hold one authsys_parms and nothing else. Errors
// are those of package xdr. Do not use a after an error.
func (a *AuthSys) Decode(body []byte) error {
	d := xdr.NewDecoder(body)
	if err := a.DecodeXDR(&d); err != nil {
		return fmt.Errorf("oncrpc: AUTH_SYS credential: %w", err)
	}
	if err := d.Finish(); err != nil {
		return fmt.Errorf("oncrpc: AUTH_SYS credential: %w", err)
	}
	return nil
}

// sysUID is the user in a credential's body. It allocates nothing.
func sysUID(body []byte) (uid uint32, ok bool) {
	d := xdr.NewDecoder(body)
	d.Uint32()
	d.Opaque("authsys_parms.machinename", MaxMachineName)
	uid = d.Uint32()
	return uid, d.Err() == nil
}

// ParseAuthSys decodes the body of an AUTH_SYS credential. The result borrows nothing.
// [AuthSys.Decode] does not allocate.
func ParseAuthSys(body []byte) (AuthSys, error) {
	var a AuthSys
	if err := a.Decode(body); err != nil {
		return AuthSys{}, err
	}
	return a, nil
}
