package top

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/view"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// The figures look as they do on the page of package view.

// number writes a rate or a count.
func number(n float64) string {
	switch {
	case n <= 0:
		return "0"
	case n < 0.05:
		return "<0.1"
	case n < 10:
		return strings.TrimSuffix(strconv.FormatFloat(n, 'f', 1, 64), ".0")
	case n < 1e4:
		return strconv.FormatFloat(n, 'f', 0, 64)
	case n < 1e6:
		return scaled(n/1e3) + " k"
	case n < 1e12:
		return scaled(n/1e6) + " M"
	}
	return strconv.FormatFloat(n, 'e', 1, 64)
}

// scaled writes n, with one decimal if it is small.
func scaled(n float64) string {
	if n < 99.95 {
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}

func count(n uint64) string { return number(float64(n)) }

func size(n float64) string { return progress.Size(uint64(min(max(n, 0), 1<<62))) }

func rate(n float64) string { return size(n) + "/s" }

// amount writes n, as bytes if bytes is set.
func amount(bytes bool, n uint64) string {
	if bytes {
		return size(float64(n))
	}
	return count(n)
}

// bound writes a limit; "any" if there is none.
func bound(bytes bool, n uint64) string {
	if n == 0 {
		return "any"
	}
	return amount(bytes, n)
}

// seconds writes a time; 0 is none.
func seconds(s float64) string {
	switch {
	case s <= 0:
		return "-"
	case s < 1e-3:
		return scaled(s*1e6) + " µs"
	case s < 1:
		return scaled(s*1e3) + " ms"
	}
	return scaled(min(s, 1e9)) + " s"
}

// span writes how long something has lasted.
func span(d time.Duration) string {
	for _, u := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}} {
		if d >= u.length {
			return strconv.FormatInt(int64(d/u.length), 10) + " " + u.name
		}
	}
	return strconv.FormatInt(int64(max(d, 0)/time.Second), 10) + " s"
}

// name cleans and shortens a name that a peer chose.
func name(s string) string {
	clean := []rune(progress.Clean(s))
	return cut(string(clean[:min(len(clean), maxRunes)]), maxName)
}

// cut shortens s to n columns.
func cut(s string, n int) string {
	if progress.Columns(s) <= n {
		return s
	}
	if n < 1 {
		return ""
	}
	return progress.Cut(s, n-1) + "…"
}

// spark draws the last width points as bars between 0 and the greatest.
func spark(points []view.Point, width int, value func(*view.Point) float64) string {
	const bars = "▁▂▃▄▅▆▇█"
	points = points[max(len(points)-max(width, 0), 0):]
	most := 0.0
	for i := range points {
		most = max(most, value(&points[i]))
	}
	var b strings.Builder
	for i := range points {
		level := 0
		switch v := value(&points[i]); {
		case v >= most && most > 0: // v may be infinite
			level = 7
		case v > 0:
			level = int(math.Round(v / most * 7))
		}
		b.WriteString(bars[3*level : 3*level+3]) // each takes three bytes
	}
	return b.String()
}

// sum is the rate of all calls at a point.
func sum(p *view.Point) (n float64) {
	for _, r := range p.Rates {
		n += r
	}
	return n
}
