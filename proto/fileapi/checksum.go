package fileapi

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"strings"

	"github.com/zeebo/blake3"
)

// The algorithms of checksums, by their names on the wire.
const (
	// SHA256 is the default where no algorithm is named: every host can compute it, by
	// sha256sum(1) at least.
	SHA256 = "sha256"
	// BLAKE3, with 256 bits, is as strong, and several times as fast where the
	// processor has no instructions for SHA-256.
	BLAKE3 = "blake3"
	// CRC32C (Castagnoli) is the cheapest. It finds errors of the network and of memory,
	// but no tampering.
	CRC32C = "crc32c"
)

// ErrChecksum is a checksum that cannot be read.
var ErrChecksum = errors.New("a checksum is the name sha256, blake3 or crc32c, and after a colon its value in lower-case hexadecimal digits")

// Checksum computes a checksum of what is written to it, by the algorithm that
// some checksum named. It is for one goroutine at a time.
type Checksum struct {
	hash.Hash
	algorithm string
	want      string // all of it; "": nothing in particular
}

// NewChecksum begins a checksum by the algorithm of s. s is a whole checksum, which
// [Checksum.Check] then expects, or an algorithm alone, or empty, which is SHA256.
// Anything else is ErrChecksum.
func NewChecksum(s string) (*Checksum, error) {
	algorithm, value, whole := strings.Cut(s, ":")
	c := &Checksum{algorithm: algorithm}
	switch algorithm {
	case SHA256, "":
		c.algorithm, c.Hash = SHA256, sha256.New()
	case BLAKE3:
		c.Hash = blake3.New()
	case CRC32C:
		c.Hash = crc32.New(crc32.MakeTable(crc32.Castagnoli))
	default:
		return nil, ErrChecksum
	}
	if whole {
		if len(value) != hex.EncodedLen(c.Size()) || strings.Trim(value, "0123456789abcdef") != "" || algorithm == "" {
			return nil, ErrChecksum
		}
		c.want = s
	}
	return c, nil
}

// String is the checksum of what has been written so far.
func (c *Checksum) String() string {
	var sum [sha256.Size]byte
	return c.algorithm + ":" + hex.EncodeToString(c.Sum(sum[:0]))
}

// Check returns the checksum of what has been written. It is an error if that is not the
// one that NewChecksum was given, or not also, unless that is empty.
func (c *Checksum) Check(also string) (string, error) {
	have := c.String()
	for _, want := range []string{c.want, also} {
		if want != "" && want != have {
			return have, fmt.Errorf("the checksum of what came is %s, not %.100s", have, want)
		}
	}
	return have, nil
}
