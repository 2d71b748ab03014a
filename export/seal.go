package export

import (
	"encoding/binary"

	"github.com/nfsbox/nfsbox/vfs"
)

// A sealed handle:
//
//	byte   0      sealPlain, or sealTree for an export that says what its tree is
//	bytes  1-4    the export's ID, big-endian
//	bytes  5-     the file system's handle, 1 to MaxInner bytes
//	last 8 bytes  SipHash-2-4 of all before, under the table's key or, for
//	              sealTree, under the tree's own; little-endian
//
// So a handle of another tree that had the same number before is stale, and naming
// the tree makes no handle longer.
const (
	sealPlain = 1
	sealTree  = 2

	sealHead = 1 + 4
	sealSum  = 8
)

// MaxInner is the size in bytes of the largest handle that an exported file system
// may have: what the seal leaves of NFSv3's 64 bytes. An operation that would have
// to hand out a larger one fails with [vfs.ErrBadHandle].
const MaxInner = vfs.MaxHandleV3 - sealHead - sealSum

// seal makes the handle that clients hold of the file system's h.
func (e *entry) seal(h *vfs.Handle) (vfs.Handle, error) {
	if h.IsZero() {
		return vfs.Handle{}, nil
	}
	if e.Verbatim {
		return verbatim(h)
	}
	if h.Len() > MaxInner {
		return vfs.Handle{}, vfs.ErrBadHandle
	}
	var buf [vfs.MaxHandleV3]byte
	b := append(buf[:0], e.version())
	b = binary.BigEndian.AppendUint32(b, e.ID)
	b = append(b, h.Bytes()...)
	b = binary.LittleEndian.AppendUint64(b, e.key.sum(b))
	return vfs.MakeHandle(b)
}

// verbatim is a handle that goes in or out without a seal.
func verbatim(h *vfs.Handle) (vfs.Handle, error) {
	if h.IsZero() || h.Len() > vfs.MaxHandleV3 {
		return vfs.Handle{}, vfs.ErrBadHandle
	}
	return *h, nil
}

// version is the first byte of the export's handles.
func (e *entry) version() byte {
	if len(e.Tree) > 0 {
		return sealTree
	}
	return sealPlain
}

// of derives the key of a tree's handles from the table's.
func (k *Key) of(tree []byte) (own Key) {
	for half := range byte(2) {
		sum := k.sum(append([]byte{'t', 'r', 'e', 'e', half}, tree...))
		binary.LittleEndian.PutUint64(own[8*half:], sum)
	}
	return own
}

// open finds the export and the file system's handle in a sealed one.
func (st *state) open(from *vfs.Handle) (*entry, vfs.Handle, error) {
	if e := &st.entries[0]; e.Verbatim {
		h, err := verbatim(from)
		return e, h, err
	}
	b := from.Bytes()
	if len(b) <= sealHead+sealSum || len(b) > vfs.MaxHandleV3 || b[0] != sealPlain && b[0] != sealTree {
		return nil, vfs.Handle{}, vfs.ErrBadHandle
	}
	e := st.byID[binary.BigEndian.Uint32(b[1:])]
	if e == nil || b[0] != e.version() {
		return nil, vfs.Handle{}, vfs.ErrStale
	}
	body := b[:len(b)-sealSum]
	if e.key.sum(body) != binary.LittleEndian.Uint64(b[len(body):]) {
		return nil, vfs.Handle{}, vfs.ErrStale
	}
	h, err := vfs.MakeHandle(body[sealHead:])
	return e, h, err
}

// asyncVerifier is the write verifier of an export that is async. No seal and no
// tree's key is a sum over the same input, since only this one begins with 'a'. It
// equals a file system's verifier only by accident, once in 2^64.
func (t *Table) asyncVerifier(id uint32) (v vfs.Verifier) {
	binary.LittleEndian.PutUint64(v[:], t.key.sum(binary.BigEndian.AppendUint32([]byte("async"), id)))
	return v
}
