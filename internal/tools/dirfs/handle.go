package dirfs

import (
	"encoding/binary"
	"fmt"

	"github.com/nfsbox/nfsbox/vfs"
)

// ident identifies an object, also from a later one with the same inode number.
type ident struct {
	dev, ino uint64
	born     int64  // nanoseconds since 1970; 0 where that is not kept, or may change
	mount    uint64 // Linux: the mount where it was found; elsewhere the device
}

// ref is the content of a handle.
type ref struct {
	kind vfs.Type
	slot uint64 // of the directory where the object was found; 0: it is the root
	id   ident
	name string // "" if it does not fit; then hash stands for it
	hash uint64
}

// A handle's bytes: the type, the slot, the identity, the length of the name, and
// the name or, where that does not fit, its hash.
const (
	handleHead = 1 + 8 + 4*8 + 1
	inlineName = vfs.MaxHandle - handleHead
)

func (r *ref) handle() vfs.Handle {
	var b [vfs.MaxHandle]byte
	le := binary.LittleEndian
	p := append(b[:0], byte(r.kind))
	for _, n := range [...]uint64{r.slot, r.id.dev, r.id.ino, uint64(r.id.born), r.id.mount} {
		p = le.AppendUint64(p, n)
	}
	p = append(p, byte(len(r.name)))
	if len(r.name) <= inlineName {
		p = append(p, r.name...)
	} else {
		p = le.AppendUint64(p, hashName(r.name))
	}
	h, _ := vfs.MakeHandle(p) // it fits
	return h
}

// parse decodes a handle. One that this package cannot have made is vfs.ErrBadHandle.
func parse(h vfs.Handle) (r ref, err error) {
	le, p := binary.LittleEndian, h.Bytes()
	if len(p) < handleHead {
		return r, vfs.ErrBadHandle
	}
	r.kind = vfs.Type(p[0])
	word := func(i int) uint64 { return le.Uint64(p[1+8*i:]) }
	r.slot = word(0)
	r.id = ident{dev: word(1), ino: word(2), born: int64(word(3)), mount: word(4)}
	n, rest := int(p[handleHead-1]), p[handleHead:]
	switch {
	case r.kind == vfs.TypeNone || r.kind > vfs.TypeFIFO:
		return r, vfs.ErrBadHandle
	case r.slot == 0:
		if n != 0 || len(rest) != 0 || r.kind != vfs.TypeDir {
			return r, vfs.ErrBadHandle
		}
		return r, nil
	case n > inlineName:
		if len(rest) != 8 {
			return r, vfs.ErrBadHandle
		}
		if r.hash = le.Uint64(rest); r.hash == 0 {
			return r, vfs.ErrBadHandle
		}
		return r, nil
	case n != len(rest) || vfs.CheckName(string(rest)) != nil:
		return r, vfs.ErrBadHandle
	}
	r.name = string(rest)
	return r, nil
}

// hashName is FNV-1a, and never 0. Names that were made to collide are told apart by the
// identity of their objects.
func hashName(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return max(h, 1)
}

// stat is what the host says of an object.
type stat struct {
	vfs.Attr
	mount uint64
	// changes says that the time of birth may change, as with overlayfs, when it copies
	// an object to its upper layer.
	changes bool
}

func (st *stat) id() ident {
	id := ident{dev: st.FSID[0], ino: st.FileID, mount: st.mount}
	if st.Has(vfs.MaskBtime) && !st.changes {
		id.born = st.Btime.UnixNano()
	}
	return id
}

// handleOf returns the handle of the object name in s.
func (f *FS) handleOf(s *slot, name string, st *stat) vfs.Handle {
	r := ref{kind: st.Type, slot: s.serial, id: st.id(), name: name}
	if len(name) > inlineName {
		f.long.keep(name)
	}
	return r.handle()
}

func (r *ref) String() string { return fmt.Sprintf("%s %q in slot %d", r.kind, r.name, r.slot) }
