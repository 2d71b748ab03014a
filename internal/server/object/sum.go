package object

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Sum is the SHA-256 of an object's content.
type Sum [sha256.Size]byte

// SumOf computes the Sum of b.
func SumOf(b []byte) Sum { return sha256.Sum256(b) }

// ParseSum reads what String writes: 64 hexadecimal digits in lower case.
func ParseSum(s string) (sum Sum, err error) {
	if len(s) != hex.EncodedLen(len(sum)) {
		return Sum{}, fmt.Errorf("object: a checksum of %d characters: SHA-256 has %d", len(s), hex.EncodedLen(len(sum)))
	}
	if _, err := hex.Decode(sum[:], []byte(s)); err != nil {
		return Sum{}, fmt.Errorf("object: checksum: %w", err)
	}
	if sum.String() != s {
		return Sum{}, fmt.Errorf("object: a checksum in upper case")
	}
	return sum, nil
}

// String is s in hexadecimal digits, in lower case.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// IsZero reports whether s is not set.
func (s Sum) IsZero() bool { return s == Sum{} }
