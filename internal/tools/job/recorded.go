package job

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// pathKey stands for a path below the copy's root: a hash of the parent's key and the name.
// So the depth of a tree costs nothing. Its lowest bit is zero.
type pathKey [16]byte

// verifiedBit was set by an earlier program for a copy that it had read back. It is ignored:
// the two may differ by now.
const verifiedBit = 1

// rootKey is the root's key. It depends on owner, so that a run with owners does not find
// files that were copied without, and copies them again.
func rootKey(owner bool) pathKey {
	if owner {
		return pathKey{}.child("with owners")
	}
	return pathKey{}.child("without owners")
}

func (k pathKey) child(name string) pathKey {
	key := k.hash(name)
	key[len(key)-1] &^= verifiedBit
	return key
}

func (k pathKey) hash(name string) pathKey {
	b := append(append(make([]byte, 0, len(k)+vfs.MaxName), k[:]...), name...)
	sum := sha256.Sum256(b)
	return pathKey(sum[:len(k)])
}

// recorded is an entry: one file that was copied.
type recorded struct {
	key          pathKey
	size         uint64
	mtime, ctime time.Time
	fileID       uint64
	copied       time.Time // mtime of the copy
	copyID       uint64    // file id of the copy; 0: not known
	listed       bool      // the source has an access control list, or a mode that may come from one
	xattr        bool      // the source has extended attributes
}

func note(key pathKey, src, dst *vfs.Attr) recorded {
	return recorded{
		key: key, size: src.Size, mtime: src.Mtime, ctime: src.Ctime, fileID: src.FileID,
		copied: dst.Mtime, copyID: dst.FileID,
	}
}

func (r *recorded) isSource(a *vfs.Attr) bool {
	return r.size == a.Size && r.mtime.Equal(a.Mtime) && r.ctime.Equal(a.Ctime) && r.fileID == a.FileID
}

// isCopy reports whether a may be the copy's attributes. A file with several names must have
// the copy's file id: somebody may have linked another file to the name. For other files
// with another id copyIDs decides.
func (r *recorded) isCopy(a *vfs.Attr) bool {
	linked := a.Nlink > 1 && a.Has(vfs.MaskNlink) && r.hasOtherID(a)
	return a.Type == vfs.TypeReg && r.size == a.Size && r.copied.Equal(a.Mtime) && !linked
}

// hasOtherID reports whether a has another file id than the copy had.
func (r *recorded) hasOtherID(a *vfs.Attr) bool {
	return r.copyID != 0 && a.Has(vfs.MaskFileID) && a.FileID != r.copyID
}

// append appends the entry in its encoding of size bytes.
func (r *recorded) append(b []byte, size int) []byte {
	start := len(b)
	b = append(b, r.key[:]...)
	b = binary.BigEndian.AppendUint64(b, r.size)
	b = appendTime(b, r.mtime)
	b = appendTime(b, r.ctime)
	b = binary.BigEndian.AppendUint64(b, r.fileID)
	b = appendTime(b, r.copied)
	b[len(b)-4] |= r.flags()
	if size == entrySize {
		b = binary.BigEndian.AppendUint64(b, r.copyID)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// flags is the highest byte of the nanoseconds' flags.
func (r *recorded) flags() (f byte) {
	if r.listed {
		f |= listBit >> 24
	}
	if r.xattr {
		f |= xattrBit >> 24
	}
	return f
}

func appendTime(b []byte, t time.Time) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(t.Unix()))
	return binary.BigEndian.AppendUint32(b, uint32(t.Nanosecond()))
}

// parseEntry decodes an entry of len(b) bytes; false if its CRC is wrong.
func parseEntry(b []byte) (r recorded, ok bool) {
	sum := binary.BigEndian.Uint32(b[len(b)-4:])
	if sum != crc32.Checksum(b[:len(b)-4], castagnoli) {
		return r, false
	}
	if len(b) == entrySize {
		r.copyID = binary.BigEndian.Uint64(b[68:])
	}
	r.key = pathKey(b)
	r.key[len(r.key)-1] &^= verifiedBit
	r.size = binary.BigEndian.Uint64(b[16:])
	r.mtime = parseTime(b[24:])
	r.ctime = parseTime(b[36:])
	r.fileID = binary.BigEndian.Uint64(b[48:])
	flags := binary.BigEndian.Uint32(b[64:])
	r.listed, r.xattr = flags&listBit != 0, flags&xattrBit != 0
	r.copied = time.Unix(int64(binary.BigEndian.Uint64(b[56:])), int64(flags&^(listBit|xattrBit)))
	return r, true
}

func parseTime(b []byte) time.Time {
	return time.Unix(int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint32(b[8:])))
}
