package object

import (
	"context"
	"errors"
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
