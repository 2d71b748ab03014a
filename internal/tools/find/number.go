package find

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// number is N, +N or -N: exactly, more than, less than.
type number struct {
	sign byte // '+', '-' or 0
	n    uint64
}

func parseNumber(text string) (x number, err error) {
	if strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-") {
		x.sign, text = text[0], text[1:]
	}
	x.n, err = strconv.ParseUint(text, 10, 63)
	if err != nil {
		return x, fmt.Errorf("%q is no number", text)
	}
	return x, nil
}

func (x number) holds(n int64) bool {
	switch x.sign {
	case '+':
		return n > int64(x.n)
	case '-':
		return n < int64(x.n)
	}
	return n == int64(x.n)
}

// size is a test of sizes, in units that are rounded up.
type size struct {
	number
	unit uint64
}

// parseSize reads [+-]N[bcwkMG]. Without a unit it is blocks of 512 bytes.
func parseSize(text string) (s size, err error) {
	s.unit = 512
	if text != "" {
		units := map[byte]uint64{'b': 512, 'c': 1, 'w': 2, 'k': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}
		if unit, ok := units[text[len(text)-1]]; ok {
			s.unit, text = unit, text[:len(text)-1]
		}
	}
	s.number, err = parseNumber(text)
	if err != nil {
		return s, fmt.Errorf("%w: a size is [+-]N[bcwkMG]", err)
	}
	return s, nil
}

func (s size) holds(bytes uint64) bool {
	units := bytes / s.unit
	if bytes%s.unit != 0 {
		units++
	}
	return s.number.holds(int64(min(units, 1<<63-1)))
}

const day = 24 * time.Hour

// days is an age in whole days, the rest cut off; in the future it is negative.
func days(age time.Duration) int64 {
	n := int64(age / day)
	if age < 0 && age%day != 0 {
		n--
	}
	return n
}

// ParseSince reads a time, or an age, which is so long before now: 2026-01-31, 2026-01-31 12:00, RFC 3339,
// or a number with s, m, h, d or w. Times without a zone are local.
func ParseSince(text string, now time.Time) (time.Time, error) {
	for _, form := range []string{time.RFC3339, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(form, text, time.Local); err == nil {
			return t, nil
		}
	}
	if text != "" {
		units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': day, 'w': 7 * day}
		unit := units[text[len(text)-1]]
		n, err := strconv.ParseInt(text[:len(text)-1], 10, 64)
		if unit != 0 && err == nil && n >= 0 && n <= int64(maxAge/unit) {
			return now.Add(-time.Duration(n) * unit), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is neither a time, such as 2026-01-31, nor an age, such as 7d", text)
}

// maxAge bounds an age that is given, so that it can be subtracted from a time. A longer one is an error.
const maxAge = 200 * 365 * day
