package bucket

import (
	"errors"
	"strconv"
	"strings"
)

// ParseRange reads a Content-Range: "bytes 0-9/100".
func ParseRange(s string) (first, size int64, err error) {
	bad := errors.New("a part of an object has no Content-Range")
	span, ok := strings.CutPrefix(s, "bytes ")
	span, total, ok2 := strings.Cut(span, "/")
	from, _, ok3 := strings.Cut(span, "-")
	if !ok || !ok2 || !ok3 {
		return 0, 0, bad
	}
	if first, err = ParseSize(from); err != nil {
		return 0, 0, bad
	}
	if size, err = ParseSize(total); err != nil {
		return 0, 0, bad
	}
	return first, size, nil
}

// ParseSize reads a number of bytes.
func ParseSize(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err
}
