package bench

import (
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// The chart's size, in units of the page, which scales it.
const (
	chartWidth  = 440 // a phone's, so that lines keep their width
	chartHeight = 160
	maxOnAChart = 500 // points of a line; of more, evenly many are left out
)

// chart is operations per second, a line for each side, from zero to the most.
type chart struct {
	Caption       string
	Width, Height int
	A, B          string // points, "x,y x,y"
}

// newChart draws rates in their order. It is nil if there are too few for a line.
func newChart(what string, a, b []float64) *chart {
	if len(a) < 2 {
		return nil
	}
	high := 1.0
	for _, x := range append(a, b...) {
		high = max(high, x)
	}
	return &chart{
		Caption: fmt.Sprintf("Operations per second, from 0 to %s: %s.", progress.Number(high), what),
		Width:   chartWidth, Height: chartHeight, A: polyline(a, high), B: polyline(b, high),
	}
}

func polyline(rates []float64, high float64) string {
	var points strings.Builder
	for i := 0; i < len(rates); i += (len(rates)-1)/maxOnAChart + 1 {
		x, y := float64(i)/float64(max(len(rates)-1, 1)), 1-min(max(rates[i]/high, 0), 1)
		fmt.Fprintf(&points, "%.1f,%.1f ", chartWidth*x, chartHeight*y)
	}
	return strings.TrimSpace(points.String())
}

// each is what of says of all xs.
func each[T any](xs []T, of func(*T) float64) (all []float64) {
	for i := range xs {
		all = append(all, of(&xs[i]))
	}
	return all
}
