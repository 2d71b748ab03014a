package progress

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Count writes n with commas: "12,345".
func Count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Size writes n bytes in the largest binary unit that keeps it at one or more:
// "512 B", "1.5 MiB".
func Size(n uint64) string {
	if n < 1024 {
		return strconv.FormatUint(n, 10) + " B"
	}
	v, units := float64(n)/1024, "KMGTPE"
	for v >= 1023.95 && len(units) > 1 {
		v, units = v/1024, units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", v, units[0])
}

// clock writes d as "1:02" or "3:04:05".
func clock(d time.Duration) string {
	s := int64(d / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// Micros writes microseconds in a unit that suits them: "12.3 µs", "4.56 ms".
func Micros(us float64) string {
	switch {
	case us < 1000:
		return fmt.Sprintf("%.1f µs", us)
	case us < 1e6:
		return fmt.Sprintf("%.2f ms", us/1e3)
	}
	return fmt.Sprintf("%.2f s", us/1e6)
}

// Number writes x, which is not negative, with as many digits as say something: "1,234",
// "12.3", "1.23".
func Number(x float64) string {
	switch {
	case x == 0:
		return "0"
	case math.Abs(x) >= 100:
		return Count(uint64(math.Round(math.Abs(x))))
	case math.Abs(x) >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.3f", x), "0")
}
