package oncrpc

import (
	"github.com/nfsbox/nfsbox/xdr"
)

// Authentication flavors (RFC 5531, section 8.2; RFC 2203; RFC 9289).
const (
	AuthNone      uint32 = 0
	AuthSysFlavor uint32 = 1
	AuthShort     uint32 = 2
	AuthGSS       uint32 = 6
	AuthTLS       uint32 = 7
)

// Auth is a credential or a verifier, the opaque_auth of RFC 5531, section 8.2.
// The zero Auth is AUTH_NONE. Body holds at most [MaxAuthBody] bytes; in what
// was received it is borrowed.
type Auth struct {
	Flavor uint32
	Body   []byte
}

// check refuses what no peer would take.
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
