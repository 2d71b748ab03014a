//go:build linux

package handlemap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// The file of the map is a header and records behind it, all little endian:
//
//	header  magic [8]byte, version uint32, slots uint32, nonce [8]byte,
//	        root's inode uint64, root's generation int64, last serial uint64, CRC uint32
//	record  CRC uint32, length of the body uint16, type byte, body
//
// Every CRC is CRC-32C over what follows it in a record, or precedes it in the
// header.
const (
	magic      = "nfsboxHM"
	mapVersion = 2
	// birthVersion knew objects by their number and birth alone. Its handles could come
	// to name other objects, and are not taken over.
	birthVersion = 1

	headerSize  = 8 + 4 + 4 + 8 + 8 + 8 + 8 + 4
	recordHead  = 4 + 2 + 1
	bindFixed   = 4 + 8 + 8 + 8 + 4 + 1 // a bind's body, less the name
	unbindSize  = 4 + 4 + 4
	dropSize    = 4
	syncedSize  = 8
	maxRecord   = recordHead + bindFixed + vfs.MaxName
	nameOffset  = recordHead + bindFixed // of the name in a bind
	onlyNameBit = 1
)

// recordType is what a record says.
type recordType byte

const (
	// recBind: the object of this slot is called name in the directory of slot
	// parent; if only, and nowhere else. The first one makes the object known.
	recBind recordType = 1 + iota
	// recUnbind: it is no longer called so. The name is given by its hash.
	recUnbind
	// recDrop: the object is gone, the slot free.
	recDrop
	// recSynced: all of the file up to this offset was on disk when the record
	// was written. Damage before it is damage; behind the last one it is what a
	// crash may leave of writes that no call was answered for.
	recSynced
)

// record is one record of the map, of any type.
type record struct {
	typ    recordType
	slot   uint32
	serial uint64
	id     linux.Ident
	parent uint32
	only   bool
	name   []byte // recBind; borrowed
	hash   uint32 // recUnbind
	synced int64  // recSynced
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errRecord says that bytes are no record.
var errRecord = errors.New("not a record")

func appendRecord(b []byte, r *record) []byte {
	at := len(b)
	le := binary.LittleEndian
	b = append(b, 0, 0, 0, 0, 0, 0, byte(r.typ))
	switch r.typ {
	case recBind:
		b = le.AppendUint32(b, r.slot)
		b = le.AppendUint64(b, r.serial)
		b = le.AppendUint64(b, r.id.Ino)
		b = le.AppendUint64(b, uint64(r.id.Gen))
		b = le.AppendUint32(b, r.parent)
		flags := byte(0)
		if r.only {
			flags = onlyNameBit
		}
		b = append(append(b, flags), r.name...)
	case recUnbind:
		b = le.AppendUint32(b, r.slot)
		b = le.AppendUint32(b, r.parent)
		b = le.AppendUint32(b, r.hash)
	case recDrop:
		b = le.AppendUint32(b, r.slot)
	case recSynced:
		b = le.AppendUint64(b, uint64(r.synced))
	}
	le.PutUint16(b[at+4:], uint16(len(b)-at-recordHead))
	le.PutUint32(b[at:], crc32.Checksum(b[at+4:], castagnoli))
	return b
}

// parseRecord reads the record at the start of b and tells its length.
func parseRecord(b []byte, r *record) (n int, err error) {
	le := binary.LittleEndian
	if len(b) < recordHead {
		return 0, errRecord
	}
	n = recordHead + int(le.Uint16(b[4:]))
	if n > len(b) || n > maxRecord || crc32.Checksum(b[4:n], castagnoli) != le.Uint32(b) {
		return 0, errRecord
	}
	body := b[recordHead:n]
	*r = record{typ: recordType(b[6])}
	switch {
	case r.typ == recBind && len(body) > bindFixed:
		r.slot, r.serial = le.Uint32(body), le.Uint64(body[4:])
		r.id = linux.Ident{Ino: le.Uint64(body[12:]), Gen: int64(le.Uint64(body[20:]))}
		r.parent, r.only = le.Uint32(body[28:]), body[32]&onlyNameBit != 0
		r.name = body[bindFixed:]
		if vfs.CheckName(string(r.name)) != nil {
			return 0, errRecord
		}
	case r.typ == recUnbind && len(body) == unbindSize:
		r.slot, r.parent, r.hash = le.Uint32(body), le.Uint32(body[4:]), le.Uint32(body[8:])
	case r.typ == recDrop && len(body) == dropSize:
		r.slot = le.Uint32(body)
	case r.typ == recSynced && len(body) == syncedSize:
		r.synced = int64(le.Uint64(body))
	default:
		return 0, errRecord
	}
	return n, nil
}

// header is the start of the file.
type header struct {
	slots  uint32 // that were in use, or had been, when the file was begun
	nonce  [8]byte
	root   linux.Ident
	serial uint64 // the last one given out by then
}

func (h *header) append(b []byte) []byte {
	at := len(b)
	le := binary.LittleEndian
	b = append(b, magic...)
	b = le.AppendUint32(b, mapVersion)
	b = le.AppendUint32(b, h.slots)
	b = append(b, h.nonce[:]...)
	b = le.AppendUint64(b, h.root.Ino)
	b = le.AppendUint64(b, uint64(h.root.Gen))
	b = le.AppendUint64(b, h.serial)
	return le.AppendUint32(b, crc32.Checksum(b[at:], castagnoli))
}

func parseHeader(b []byte, h *header) error {
	le := binary.LittleEndian
	if len(b) < headerSize || string(b[:8]) != magic {
		return errors.New("this is no map of handles")
	}
	v := le.Uint32(b[8:])
	if v == birthVersion {
		return fmt.Errorf("%w, or is of version %d", errOtherMap, v)
	}
	if v != mapVersion {
		return fmt.Errorf("the map of handles has version %d; this program knows version %d", v, mapVersion)
	}
	if crc32.Checksum(b[:headerSize-4], castagnoli) != le.Uint32(b[headerSize-4:]) {
		return errors.New("the header of the map of handles is damaged")
	}
	h.slots = le.Uint32(b[12:])
	copy(h.nonce[:], b[16:])
	h.root = linux.Ident{Ino: le.Uint64(b[24:]), Gen: int64(le.Uint64(b[32:]))}
	h.serial = le.Uint64(b[40:])
	if h.slots > MaxEntries {
		return fmt.Errorf("the map of handles claims %d entries; %d are the most", h.slots, MaxEntries)
	}
	return nil
}

func hashName[T string | []byte](name T) uint32 { return crc32.Checksum([]byte(name), castagnoli) }

// errOtherMap says that a map is of no use for the directory that is served.
var errOtherMap = errors.New("the old one belongs to another directory")
