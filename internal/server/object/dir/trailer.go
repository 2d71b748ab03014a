package dir

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
	trailerMagic   = "NFSBOXOB"
	trailerVersion = 1
	trailerSize    = 64
)

// trailer describes the content of a file.
type trailer struct {
	size int64
	sum  object.Sum
	crc  uint32 // of the content: cheap enough for every read
}

func castagnoli(crc uint32, p []byte) uint32 {
	return crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), p)
}

// append writes the trailer of the object of key.
func (t *trailer) append(b []byte, key string) []byte {
	start := len(b)
	b = append(b, trailerMagic...)
	b = binary.BigEndian.AppendUint32(b, trailerVersion)
	b = binary.BigEndian.AppendUint32(b, castagnoli(0, []byte(key)))
	b = binary.BigEndian.AppendUint64(b, uint64(t.size))
	b = append(b, t.sum[:]...)
	b = binary.BigEndian.AppendUint32(b, t.crc)
	return binary.BigEndian.AppendUint32(b, castagnoli(0, b[start:]))
}

// parseTrailer reads the trailer b of the object of key, in a file of that size.
// Its errors are object.ErrCorrupted.
func parseTrailer(b []byte, key string, fileSize int64) (t trailer, err error) {
	switch {
	case len(b) != trailerSize || string(b[:8]) != trailerMagic:
		return t, damaged("it has no trailer")
	case castagnoli(0, b[:60]) != binary.BigEndian.Uint32(b[60:]):
		return t, damaged("its trailer does not fit its checksum")
	case binary.BigEndian.Uint32(b[8:]) != trailerVersion:
		return t, fmt.Errorf("a trailer of version %d, which this program does not know", binary.BigEndian.Uint32(b[8:]))
	case binary.BigEndian.Uint32(b[12:]) != castagnoli(0, []byte(key)):
		return t, damaged("it was put under another key")
	}
	t.size = int64(binary.BigEndian.Uint64(b[16:]))
	if t.size != fileSize-trailerSize {
		return t, damaged(fmt.Sprintf("it has %d bytes, and had %d", fileSize-trailerSize, t.size))
	}
	t.sum = object.Sum(b[24:56])
	t.crc = binary.BigEndian.Uint32(b[56:])
	return t, nil
}

func damaged(how string) error { return fmt.Errorf("%w: %s", object.ErrCorrupted, how) }
