package wire

import (
	"fmt"

	"github.com/nfsbox/nfsbox/xdr"
)

// message is what can be decoded.
type message interface{ DecodeXDR(d *xdr.Decoder) error }

// decode decodes all of b.
func decode(b []byte, m message) error {
	d := xdr.NewDecoder(b)
	if err := m.DecodeXDR(&d); err != nil {
		return err
	}
	return d.Finish()
}

// VersionError says that a message is of another version of this protocol.
type VersionError struct{ Speaks uint32 }

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("it speaks version %d of the protocol of workers, and this program version %d: have the same nfsbox everywhere", e.Speaks, VERSION)
}

// Decode decodes a message that begins with a version. Of another one it is a VersionError, whatever
// follows. What it returns refers to b.
func Decode[T any, M interface {
	*T
	message
}](b []byte) (m T, err error) {
	d := xdr.NewDecoder(b)
	if v := d.Uint32(); d.Err() == nil && v != VERSION {
		return m, &VersionError{v}
	}
	return m, decode(b, M(&m))
}
