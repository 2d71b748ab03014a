package object

import (
	"fmt"
	"strconv"
	"strings"
)

// Bounds of keys. They are well below those of the stores that we know of: S3 takes
// 1024 bytes, a file system 255 for each name.
const (
	// MaxKey bounds a key, in bytes. A longer one is [ErrKey].
	MaxKey = 512
	// MaxSegment bounds a segment between slashes, in bytes. A longer one is ErrKey.
	MaxSegment = 128
	// MaxSegments bounds how many segments a key has, and so how deep a driver
	// nests its directories. A key with more is ErrKey.
	MaxSegments = 16
)

// shownKey bounds how much of a key a message repeats; the rest is left out.
const shownKey = 96

// CheckKey returns nil if key is one, and otherwise an error that Is [ErrKey].
//
// A key is segments with single slashes between them. A segment is made of a-z, 0-9,
// '-', '_' and '.', and begins with a letter or a digit: so it is never ".", "..", a
// hidden file or an option. Upper case is left out so that a store can move to a file
// system that ignores case. All other bytes are left out so that a key never needs
// escaping in a URL, a shell, a log or a file name.
func CheckKey(key string) error {
	if err := CheckPrefix(key); err != nil {
		return err
	}
	if key == "" || strings.HasSuffix(key, "/") {
		return badKey("its last segment is empty")
	}
	return nil
}

// CheckPrefix returns nil if prefix may be the beginning of a key, or all of it,
// or is empty; and otherwise an error that Is [ErrKey].
func CheckPrefix(prefix string) error {
	if len(prefix) > MaxKey {
		return badKey("it is longer than " + strconv.Itoa(MaxKey) + " bytes")
	}
	segments, length := 1, 0
	for i := range len(prefix) {
		c := prefix[i]
		switch {
		case c == '/' && length == 0:
			return badKey("a segment is empty")
		case c == '/':
			length = 0
			segments++
			continue
		case !inKey(c):
			return badKey("it contains " + strconv.QuoteRune(rune(c)))
		case length == 0 && !startsSegment(c):
			return badKey("a segment begins with " + strconv.QuoteRune(rune(c)))
		}
		if length++; length > MaxSegment {
			return badKey("a segment is longer than " + strconv.Itoa(MaxSegment) + " bytes")
		}
	}
	if segments > MaxSegments {
		return badKey("it has more than " + strconv.Itoa(MaxSegments) + " segments")
	}
	return nil
}

func startsSegment(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

func inKey(c byte) bool { return startsSegment(c) || c == '-' || c == '_' || c == '.' }

func badKey(why string) error {
	return fmt.Errorf("%w: %s", ErrKey, why)
}

func quote(key string) string {
	if len(key) > shownKey {
		return strconv.Quote(key[:shownKey]) + "..."
	}
	return strconv.Quote(key)
}
