package export

import (
	"encoding/binary"

	"github.com/nfsbox/nfsbox/vfs"
)

// A sealed handle:
//
//	byte   0      sealVersion
//	bytes  1-4    the export's ID, big-endian
//	bytes  5-     the file system's handle, 1 to MaxInner bytes
//	last 8 bytes  SipHash-2-4 of all before, little-endian
const (
	sealVersion = 1
	sealHead    = 1 + 4
	sealSum     = 8
)

// MaxInner is the size of the largest handle, in bytes, that a file system may
// have to be exported: what is left of NFSv3's 64 bytes. A larger handle is
// [vfs.ErrBadHandle] wherever it would have to go out.
const MaxInner = vfs.MaxHandleV3 - sealHead - sealSum

// seal makes the handle that clients hold of the file system's h.
func (t *Table) seal(id uint32, h *vfs.Handle) (vfs.Handle, error) {
	if h.IsZero() {
		return vfs.Handle{}, nil
	}
	if h.Len() > MaxInner {
		return vfs.Handle{}, vfs.ErrBadHandle
	}
	var buf [vfs.MaxHandleV3]byte
	b := append(buf[:0], sealVersion)
	b = binary.BigEndian.AppendUint32(b, id)
	b = append(b, h.Bytes()...)
	b = binary.LittleEndian.AppendUint64(b, t.key.sum(b))
	return vfs.MakeHandle(b)
}

// open finds the export and the file system's handle in a sealed one.
func (t *Table) open(st *state, sealed *vfs.Handle) (*entry, vfs.Handle, error) {
	b := sealed.Bytes()
	if len(b) <= sealHead+sealSum || len(b) > vfs.MaxHandleV3 || b[0] != sealVersion {
		return nil, vfs.Handle{}, vfs.ErrBadHandle
	}
	body := b[:len(b)-sealSum]
	if t.key.sum(body) != binary.LittleEndian.Uint64(b[len(body):]) {
		return nil, vfs.Handle{}, vfs.ErrStale
	}
	e := st.byID[binary.BigEndian.Uint32(b[1:])]
	if e == nil {
		return nil, vfs.Handle{}, vfs.ErrStale
	}
	h, err := vfs.MakeHandle(body[sealHead:])
	return e, h, err
}

// asyncVerifier is the write verifier of an export that is async. It differs
// from every sealed handle's sum by its input, which is shorter than any, and
// from a file system's verifier by chance alone.
func (t *Table) asyncVerifier(id uint32) (v vfs.Verifier) {
	binary.LittleEndian.PutUint64(v[:], t.key.sum(binary.BigEndian.AppendUint32([]byte("async"), id)))
	return v
}
