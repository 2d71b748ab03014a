package bench

import (
	"fmt"
	"math"
	"strings"
)

// Measures of charts, in units of the page, which scales them.
const (
	chartWidth  = 440 // about a phone's, so that texts keep their size
	labelWidth  = 120 // of names to the left
	valueWidth  = 70  // of values to the right
	rowHeight   = 26
	plotHeight  = 180
	maxOnAChart = 500 // points; of more, every so manieth is drawn
)

// chart is a drawing of lines, bars, dots and texts.
type chart struct {
	Title, Caption string
	Width, Height  int
	Axes, Whiskers []stroke
	Bars           []bar
	Dots           []dot
	Texts          []label
	Path           string // of points "x,y"
}

type stroke struct{ X1, Y1, X2, Y2 float64 }

type bar struct {
	Class      string
	X, Y, W, H float64
}

type dot struct {
	Class   string
	X, Y, R float64
}

type label struct {
	Class, Anchor, Text string
	X, Y                float64
}

func (c *chart) text(class, anchor string, x, y float64, text string) {
	c.Texts = append(c.Texts, label{class, anchor, text, round(x), round(y)})
}

// round keeps the page small.
func round(x float64) float64 { return math.Round(x*10) / 10 }

// latencies are bars, on a logarithmic scale.
func latencies(l *Latency) *chart {
	rows := [...]struct {
		name string
		us   float64
	}{{"mean", l.Mean}, {"50 %", l.P50}, {"90 %", l.P90}, {"99 %", l.P99}, {"99.9 %", l.P999}, {"longest", l.Max}}
	c := &chart{Title: "How long operations took", Caption: "Logarithmic scale.", Width: chartWidth, Height: len(rows) * rowHeight}
	low, high := math.Inf(1), 1.0
	for _, r := range rows {
		if r.us > 0 {
			low = min(low, r.us)
		}
		high = max(high, r.us)
	}
	scale := logScale(low/2, high, labelWidth, chartWidth-valueWidth)
	for i, r := range rows {
		y := float64(i * rowHeight)
		c.text("name", "start", 0, y+17, r.name)
		if r.us > 0 {
			c.Bars = append(c.Bars, bar{"a", labelWidth, y + 5, round(scale(r.us) - labelWidth), 16})
		}
		c.text("value", "end", chartWidth, y+17, Micros(r.us))
	}
	return c
}

// logScale maps low to from and high to to, and what is between by its logarithm.
func logScale(low, high, from, to float64) func(float64) float64 {
	if !(low > 0) || !(high > low) {
		return func(float64) float64 { return from }
	}
	span := math.Log(high / low)
	return func(x float64) float64 {
		return from + (to-from)*min(max(math.Log(x/low)/span, 0), 1)
	}
}

// rates are operations per second over time; nil if there is no time to speak of.
func rates(samples []Sample) *chart {
	if len(samples) < 2 {
		return nil
	}
	high, end := 1.0, samples[len(samples)-1].Seconds
	for _, s := range samples {
		high = max(high, s.OpsPerSecond)
	}
	c := plot("Operations per second", fmt.Sprintf("Over %.0f s, a point for each second.", end), high)
	step := (len(samples)-1)/maxOnAChart + 1
	var path strings.Builder
	for i := 0; i < len(samples); i += step {
		s := &samples[i]
		fmt.Fprintf(&path, "%.1f,%.1f ", labelWidth+(chartWidth-labelWidth)*s.Seconds/max(end, 1e-9), height(s.OpsPerSecond, high))
	}
	c.Path = strings.TrimSpace(path.String())
	return c
}

// plot is an empty chart from zero to high.
func plot(title, caption string, high float64) *chart {
	c := &chart{Title: title, Caption: caption, Width: chartWidth, Height: plotHeight + 20}
	for _, share := range [...]float64{0, 0.5, 1} {
		y := round(height(high*share, high))
		c.Axes = append(c.Axes, stroke{labelWidth, y, chartWidth, y})
		c.text("dim", "end", labelWidth-8, y+4, number(high*share))
	}
	return c
}

// height is where x is on a plot.
func height(x, high float64) float64 { return 10 + plotHeight*(1-min(max(x/high, 0), 1)) }

// turns are operations per second of every run of a comparison.
func turns(runs []*Round) *chart {
	high := 1.0
	for _, r := range runs {
		high = max(high, r.OpsPerSecond)
	}
	c := plot("Operations per second, run by run", "In the order of the runs; A is blue, B is orange.", high)
	step := (len(runs)-1)/maxOnAChart + 1
	for i := 0; i < len(runs); i += step {
		x := labelWidth + (chartWidth-labelWidth)*(float64(i)+0.5)/float64(len(runs))
		c.Dots = append(c.Dots, dot{runs[i].Side, round(x), round(height(runs[i].OpsPerSecond, high)), 5})
	}
	return c
}

// ratios are dots between the least and the greatest, around 1.
func ratios(figures []Figure) *chart {
	c := &chart{Title: "B compared with A", Width: chartWidth, Height: len(figures)*rowHeight + 24,
		Caption: "Logarithmic scale; left of the middle B has less, right of it more; the colour is that of the better one, and grey where rounds contradict each other. The line through a dot is from the least to the greatest ratio of all rounds."}
	far := 1.25
	for _, f := range figures {
		far = max(far, f.Ratio.Max, 1/f.Ratio.Min)
	}
	scale := logScale(1/far, far, labelWidth+10, chartWidth-valueWidth-10)
	bottom := float64(len(figures) * rowHeight)
	for _, at := range [...]float64{1 / far, 1, far} {
		c.Axes = append(c.Axes, stroke{round(scale(at)), 0, round(scale(at)), bottom})
		c.text("dim", "middle", scale(at), bottom+16, number(at))
	}
	for i, f := range figures {
		y := float64(i*rowHeight) + 13
		c.text("name", "start", 0, y+4, f.Name)
		c.Whiskers = append(c.Whiskers, stroke{round(scale(f.Ratio.Min)), y, round(scale(f.Ratio.Max)), y})
		c.Dots = append(c.Dots, dot{f.winner(), round(scale(f.Ratio.Median)), y, 6})
		c.text("value", "end", chartWidth, y+4, number(f.Ratio.Median))
	}
	return c
}

// winner is the side that was better in all rounds: "a", "b", or "even".
func (f *Figure) winner() string {
	switch more := f.Better == "more"; {
	case f.Ratio.Min > 1 && more, f.Ratio.Max < 1 && !more:
		return "b"
	case f.Ratio.Min > 1, f.Ratio.Max < 1:
		return "a"
	}
	return "even"
}
