package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration as people write it: "90s", "1h30m", "7d", "0". A day
// has 24 hours, and stands alone.
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if days, ok := strings.CutSuffix(string(b), "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16) // so that the product does not overflow
		v = time.Duration(n) * day
	}
	switch {
	case err != nil:
		return fmt.Errorf("%q is no time; write it as 500ms, 90s, 10m, 1h30m or 7d", b)
	case v < 0 || v > maxTime:
		return fmt.Errorf("%q is not within 0 and %v", b, Duration(maxTime))
	}
	*d = Duration(v)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String leaves out the units that are zero: "1h", not "1h0m0s".
func (d Duration) String() string {
	if n := time.Duration(d) / day; n > 0 && time.Duration(d)%day == 0 {
		return strconv.FormatInt(int64(n), 10) + "d"
	}
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// Size is a number of bytes as people write it: "64MiB", "4096".
type Size int64

// units are the sizes' units, the largest first.
var units = [...]struct {
	name  string
	shift uint
}{{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}}

// maxSize bounds a Size.
const maxSize = 1 << 50

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Size) UnmarshalText(b []byte) error {
	text, shift := string(b), uint(0)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			text, shift = strings.TrimSpace(rest), u.shift
			break
		}
	}
	v, err := strconv.ParseUint(text, 10, 63)
	switch {
	case err != nil:
		return fmt.Errorf("%q is no size; write it as 4096, 64KiB, 128MiB or 1GiB", b)
	case v > maxSize>>shift:
		return fmt.Errorf("%q is above %v", b, Size(maxSize))
	}
	*s = Size(v << shift)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String implements fmt.Stringer.
func (s Size) String() string {
	for _, u := range units {
		if s != 0 && s%(1<<u.shift) == 0 {
			return strconv.FormatInt(int64(s)>>u.shift, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
