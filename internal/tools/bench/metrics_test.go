package bench

import (
	"strings"
	"testing"
	"time"
)

const metricsPage = `# HELP nfsbox_rpc_calls_total Calls.
# TYPE nfsbox_rpc_calls_total counter
nfsbox_rpc_calls_total{procedure="NFSPROC3_READ",version="3"} 1.5e+03
nfsbox_rpc_calls_total{procedure="NFSPROC3_NULL",version="3"} 7
nfsbox_rpc_calls_total{procedure="MOUNTPROC3_MNT",version="3"} 3
nfsbox_api_calls_total{procedure="Put"} 12
nfsbox_directory_info{dir="a b 9",x="{"} 1
nfsbox_process_threads 21
process_cpu_seconds_total 1.25

`

// TestParsePage takes what is wanted of a page of metrics.
func TestParsePage(t *testing.T) {
	p, err := parsePage(strings.NewReader(metricsPage))
	if err != nil {
		t.Fatal(err)
	}
	if p.cpu != 1250*time.Millisecond || p.threads != 21 || len(p.calls) != 3 || p.calls["READ"] != 1500 || p.calls["NULL"] != 7 || p.calls["Put"] != 12 {
		t.Errorf("%+v", p)
	}
	for name, bad := range map[string]string{
		"empty": "", "another program's": "go_goroutines 7\n", "a word": "nfsbox_process_threads x\n", "NaN": "nfsbox_process_threads NaN\n",
		"negative": "nfsbox_api_calls_total{procedure=\"Put\"} -1\n", "endless": "process_cpu_seconds_total +Inf\n",
		"long line": "nfsbox_x " + strings.Repeat("1", maxMetric) + "\n", "long": strings.Repeat("nfsbox_x 1\n", maxMetrics/10),
	} {
		if p, err := parsePage(strings.NewReader(bad)); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestMetricsPath has a server's metrics where they usually are.
func TestMetricsPath(t *testing.T) {
	for given, want := range map[string]string{
		"http://h:9464": "http://h:9464/metrics", "http://h:9464/": "http://h:9464/metrics", "http://h:9464/m": "http://h:9464/m", "": "",
	} {
		o := Options{ServerMetrics: given}
		if err := o.checkMetrics(); err != nil || o.ServerMetrics != want {
			t.Errorf("%q: %q, %v", given, o.ServerMetrics, err)
		}
	}
}

// FuzzParsePage parses any bytes without trouble.
func FuzzParsePage(f *testing.F) {
	f.Add(metricsPage)
	f.Add("nfsbox_rpc_calls_total{procedure=\"NFSPROC3_ 1")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePage(strings.NewReader(text))
		if err == nil && (p.cpu < 0 || p.threads < 0 || len(p.calls) > maxProcedures) {
			t.Errorf("%+v", p)
		}
	})
}

// TestItems makes the same files for the same seed, all with names of their own, which
// clean takes for what they are.
func TestItems(t *testing.T) {
	o := &Options{Size: 100, Seed: 7, Files: 10_000}
	d, again := newDataset(o), newDataset(o)
	other := newDataset(&Options{Size: 100, Seed: 8, Files: 10_000})
	names, contents := make(map[string]bool), make(map[string]bool)
	for i := range uint64(10_000) {
		for _, n := range []uint64{i, firstWarmUp + i} {
			x, y, z := d.item(n), again.item(n), other.item(n)
			if x.name != y.name || x.dir != y.dir || string(x.data) != string(y.data) || len(x.data) != 100 || x.name == z.name {
				t.Fatalf("file %d: %q, %q, %q", n, x.name, y.name, z.name)
			}
			if names[x.name] || !ourFile(x.name) || !ourDir(dirName(x.dir)) {
				t.Fatalf("file %d has the name %q", n, x.name)
			}
			names[x.name], contents[string(x.data)] = true, true
		}
	}
	if len(contents) < windows*9/10 {
		t.Errorf("there are %d different contents", len(contents))
	}
}

// TestOurNames tells what upload makes from what others do.
func TestOurNames(t *testing.T) {
	for name, ours := range map[string]bool{
		"0123456789abcdef": true, "0123456789abcdef.01234567.1": true, "0123456789abcdef.01234567.0123456789abcdef": true,
		"": false, "0123456789ABCDEF": false, "0123456789abcde": false, "0123456789abcdef0": false, "0123456789abcdef.": false,
		"0123456789abcdef.01234567": false, "0123456789abcdef.01234567.": false, "0123456789abcdef.0123456.1": false,
		"0123456789abcdef.01234567.1.1": false, "0123456789abcdef.01234567.g": false, "notes": false, "..": false,
	} {
		if ourFile(Prefix+name) != ours || ourFile(name) {
			t.Errorf("%q: %t", name, !ours)
		}
	}
}
