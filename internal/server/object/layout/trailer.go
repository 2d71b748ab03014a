package layout

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// An object's file is its content, and after it a trailer of fixed size. So the content
// can be written before its sums are known, begins on a page, and is what `head -c -64`
// prints. All numbers are big endian, and a CRC is CRC-32C.
//
//	magic (8), version (4), CRC of the key (4), size (8), SHA-256 (32),
//	CRC of the content (4), CRC of the trailer so far (4)
const (
	// TrailerSize is the trailer's, in bytes.
	TrailerSize = 64

	trailerMagic   = "NFSBOXOB"
	trailerVersion = 1
)

// Trailer describes the content of a file.
type Trailer struct {
	Size int64
	Sum  object.Sum
	CRC  uint32 // of the content: cheap enough for every read
}

// CRC goes on with the CRC-32C of what came before p.
func CRC(crc uint32, p []byte) uint32 {
	return crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), p)
}

// Append writes the trailer of the object of key.
func (t *Trailer) Append(b []byte, key string) []byte {
	start := len(b)
	b = append(b, trailerMagic...)
	b = binary.BigEndian.AppendUint32(b, trailerVersion)
	b = binary.BigEndian.AppendUint32(b, CRC(0, []byte(key)))
	b = binary.BigEndian.AppendUint64(b, uint64(t.Size))
	b = append(b, t.Sum[:]...)
	b = binary.BigEndian.AppendUint32(b, t.CRC)
	return binary.BigEndian.AppendUint32(b, CRC(0, b[start:]))
}

// ParseTrailer reads the trailer b of the object of key, in a file of that size.
// Its errors are object.ErrCorrupted.
func ParseTrailer(b []byte, key string, fileSize int64) (t Trailer, err error) {
	switch {
	case len(b) != TrailerSize || string(b[:8]) != trailerMagic:
		return t, Damaged("it has no trailer")
	case CRC(0, b[:60]) != binary.BigEndian.Uint32(b[60:]):
		return t, Damaged("its trailer does not fit its checksum")
	case binary.BigEndian.Uint32(b[8:]) != trailerVersion:
		return t, fmt.Errorf("a trailer of version %d, which this program does not know", binary.BigEndian.Uint32(b[8:]))
	case binary.BigEndian.Uint32(b[12:]) != CRC(0, []byte(key)):
		return t, Damaged("it was put under another key")
	}
	t.Size = int64(binary.BigEndian.Uint64(b[16:]))
	if t.Size != fileSize-TrailerSize {
		return t, Damaged(fmt.Sprintf("it has %d bytes, and had %d", fileSize-TrailerSize, t.Size))
	}
	t.Sum = object.Sum(b[24:56])
	t.CRC = binary.BigEndian.Uint32(b[56:])
	return t, nil
}

// Damaged is an error that Is object.ErrCorrupted.
func Damaged(how string) error { return fmt.Errorf("%w: %s", object.ErrCorrupted, how) }
