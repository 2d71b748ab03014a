package bench_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/tools/bench"
)

// hostile is what a URL, or a server's words, may look like.
const hostile = `nfs://h/"><script>alert('x')</script>&<!--\u0000 ]]>` + "\x1b\xff"

// wellFormed holds a page to the rules of XML, and to have no script and nothing from
// elsewhere.
func wellFormed(t *testing.T, page []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(page))
	d.Strict = true
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in\n%.9000s", err, page)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch name := start.Name.Local; name {
		case "script", "link", "img", "iframe", "object", "a", "use", "image":
			t.Errorf("the page has a %s", name)
		}
		for _, a := range start.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" || a.Name.Local == "src" || a.Value == "NaN" || strings.Contains(a.Value, "Inf") {
				t.Errorf("%s has %s=%q", start.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
}

// TestPage writes pages of runs, whatever figures and words they have.
func TestPage(t *testing.T) {
	no, threads, ops := false, 17, uint64(5)
	perOp := 3.5
	full := &bench.Result{
		Verb: "upload", URL: hostile, Concurrency: 4, Ops: 5, Errors: 2, Seconds: 2, OpsPerSecond: 2.5, CountsMatch: &no,
		Faults: []bench.Fault{{Kind: "IO", Count: 2, Example: hostile}}, ServerThreads: &threads, ServerOps: &ops,
		CPU:     bench.CPU{ServerPerOp: &perOp},
		Latency: bench.Latency{Mean: 10, P50: 5, P90: 20, P99: 2000, P999: 3e6, Max: 4e6},
	}
	samples := make([]bench.Sample, 5000)
	for i := range samples {
		samples[i] = bench.Sample{Seconds: float64(i + 1), OpsPerSecond: float64(i % 7)}
	}
	for name, tc := range map[string]struct {
		res     *bench.Result
		samples []bench.Sample
	}{
		"full": {full, samples}, "empty": {&bench.Result{}, nil}, "one sample": {full, samples[:1]}, "two": {full, samples[:2]},
		"odd": {&bench.Result{OpsPerSecond: math.Inf(1), Latency: bench.Latency{P50: math.NaN(), Max: math.Inf(1)}}, make([]bench.Sample, 3)},
	} {
		var b bytes.Buffer
		if err := tc.res.WriteHTML(&b, tc.samples); err != nil {
			t.Fatal(name, err)
		}
		wellFormed(t, b.Bytes())
		if b.Len() > 100_000 {
			t.Errorf("%s: %d bytes", name, b.Len())
		}
		if name != "full" {
			continue
		}
		for _, want := range []string{"&lt;script&gt;", "cut short", "something else", "2 times IO", "3.00 s", "<polyline", "<td>17</td>", "viewport", "prefers-color-scheme"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %s", want)
			}
		}
	}
}

// TestComparisonPage writes a page of a comparison.
func TestComparisonPage(t *testing.T) {
	runs := []*bench.Round{round("a", 100, 10, 5), round("b", 200, 10, 9)}
	for _, r := range runs {
		r.URL = hostile
	}
	c := bench.Compared(bench.CompareOptions{Rounds: 2, A: bench.Options{Verb: "upload"}}, runs)
	var b bytes.Buffer
	if err := c.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.Bytes())
	for _, want := range []string{"cut short", "<td>ops_per_second</td><td>100</td><td>200</td><td>2.00</td>", "server_threads", "times NOSPC"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%.9000s", want, b.String())
		}
	}
}
