package object

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// contentPrefix is where objects are whose key is their checksum.
const contentPrefix = "sha256/"

// ContentKey is the key of the object whose content has that checksum.
func ContentKey(sum Sum) string { return contentPrefix + sum.String() }

// ContentSum returns the checksum that key demands of its object's content. It is false
// if key is no [ContentKey].
func ContentSum(key string) (Sum, bool) {
	digits, ok := strings.CutPrefix(key, contentPrefix)
	if !ok {
		return Sum{}, false
	}
	sum, err := ParseSum(digits)
	return sum, err == nil
}

// PutContent stores content by its checksum, of size bytes or of an unknown number (-1).
// If the store has it already, r is not read and stored is false. Any number of calls may
// store the same content at once: all succeed, and there is one object in the end.
//
// An existing object that is corrupted is replaced.
func PutContent(ctx context.Context, s Store, sum Sum, size int64, r io.Reader) (info Info, stored bool, err error) {
	key := ContentKey(sum)
	info, err = s.Stat(ctx, key)
	switch {
	case err == nil && info.Sum == sum:
		return info, false, nil
	case errors.Is(err, ErrNotExist):
		info, err = s.Put(ctx, key, r, PutOptions{Size: size, Sum: &sum, IfAbsent: true})
		if errors.Is(err, ErrExist) { // Another call was faster.
			info, err = s.Stat(ctx, key)
			return info, false, err
		}
	case err == nil || errors.Is(err, ErrCorrupted):
		info, err = s.Put(ctx, key, r, PutOptions{Size: size, Sum: &sum})
	}
	return info, err == nil, err
}

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
