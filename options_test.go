package nfsbox

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/metric"
	"github.com/nfsbox/nfsbox/internal/client/pace"
)

// TestOptions looks at what becomes of a URL and of the Options beside it, which
// hold where both speak.
func TestOptions(t *testing.T) {
	const base = "nfs://filer/e"
	for name, tc := range map[string]struct {
		args string
		opts []Option
		ok   func(c *config) bool
	}{
		"nothing": {"", nil, func(c *config) bool {
			return !c.FS.Hard && !c.FS.SoftErr && c.Conns == 0 && c.Timeout == 0 && c.Retries == 0 && c.DialTries == 0 && !c.DialOnce && c.FS.Pace != nil && c.Log == nil
		}},
		"hard":             {"?hard", nil, func(c *config) bool { return c.FS.Hard && !c.FS.SoftErr }},
		"softerr":          {"?softerr", nil, func(c *config) bool { return !c.FS.Hard && c.FS.SoftErr }},
		"hard over soft":   {"?softerr", []Option{WithHard()}, func(c *config) bool { return c.FS.Hard && !c.FS.SoftErr }},
		"patience":         {"?timeo=10&retrans=0", nil, func(c *config) bool { return c.Timeout == time.Second && c.Retries == -1 }},
		"other patience":   {"?timeo=10&retrans=9", []Option{WithTimeout(time.Minute, 0)}, func(c *config) bool { return c.Timeout == time.Minute && c.Retries == -1 }},
		"more tries":       {"", []Option{WithTimeout(time.Minute, 5)}, func(c *config) bool { return c.Retries == 5 }},
		"endless patience": {"", []Option{WithTimeout(time.Hour, math.MaxInt)}, func(c *config) bool { return c.buffers.Patience == math.MaxInt64 }},
		"reconnect":        {"?autoreconnect=5", nil, func(c *config) bool { return c.DialTries == 5 && !c.DialOnce }},
		"reconnect always": {"?autoreconnect=-1", nil, func(c *config) bool { return c.DialTries == math.MaxInt }},
		"reconnect never":  {"?autoreconnect=0", nil, func(c *config) bool { return c.DialTries == 1 && c.DialOnce }},
		"connections":      {"?nconnect=8", nil, func(c *config) bool { return c.Conns == 8 }},
		"connections over": {"?nconnect=8", []Option{WithConnections(2)}, func(c *config) bool { return c.Conns == 2 }},
		"no connection":    {"", []Option{WithConnections(0)}, func(c *config) bool { return c.Conns < 0 }},
		"load":             {"?max-load=7", nil, func(c *config) bool { return c.FS.Pace.Snapshot()[pace.Write].Limit == 7 }},
		"load over":        {"?max-load=7", []Option{WithMaxLoad(3)}, func(c *config) bool { return c.FS.Pace.Snapshot()[pace.Metadata].Limit == 3 }},
		"localio":          {"?localio=require&localio-dir=/run/x", nil, func(c *config) bool { return c.localIO == LocalIORequire && c.localIODir == "/run/x" }},
		"localio over": {"?localio=require&localio-dir=/run/x", []Option{WithLocalIO(LocalIOOff), WithLocalIODir("/y")}, func(c *config) bool {
			return c.localIO == LocalIOOff && c.localIODir == "/y"
		}},
		"fsc":      {"?fsc", nil, func(c *config) bool { return c.cached && c.cacheDir == "" && c.cacheMark == "" }},
		"fsc=":     {"?fsc=a%2Fb", nil, func(c *config) bool { return c.cached && c.cacheMark == "a/b" }},
		"cache":    {"?cache=/c", nil, func(c *config) bool { return c.cached && c.cacheDir == "/c" }},
		"no cache": {"", []Option{WithCacheConfig("/c")}, func(c *config) bool { return !c.cached }},
		"cache over": {"?cache=/c&fsc=x", []Option{WithCache("/d"), WithCacheMark("y")}, func(c *config) bool {
			return c.cacheDir == "/d" && c.cacheMark == "y"
		}},
		"nordirplus":      {"?nordirplus", nil, func(c *config) bool { return c.FS.NoPlus }},
		"readahead":       {"?readahead=65536", nil, func(c *config) bool { return c.ahead.File == 65536 }},
		"no readahead":    {"?readahead=0", nil, func(c *config) bool { return c.ahead.File < 0 }},
		"WithReadAhead":   {"?readahead=0", []Option{WithReadAhead(4096)}, func(c *config) bool { return c.ahead.File == 4096 }},
		"WithDirty":       {"", []Option{WithDirty(1 << 30)}, func(c *config) bool { return c.buffers.MaxDirty == 1<<30 }},
		"patience behind": {"?timeo=20&retrans=1", nil, func(c *config) bool { return c.buffers.Patience == 4*time.Second }},
		"none of it ends": {"?hard", nil, func(c *config) bool { return c.buffers.Patience == math.MaxInt64 }},
	} {
		c, err := options(base+tc.args, tc.opts)
		if err != nil || !tc.ok(c) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	for _, opt := range []Option{WithLocalIO(LocalIOTrusted + 1), WithLocalIODir("relative")} {
		if c, err := options(base, []Option{opt}); err == nil {
			t.Errorf("%v in %q was taken", c.localIO, c.localIODir)
		}
	}
	for _, n := range []int{-1, maxLoad + 1} {
		if _, err := options(base, []Option{WithMaxLoad(n)}); err == nil {
			t.Errorf("a load of %d was taken", n)
		}
	}
	if _, err := options(base, []Option{WithTimeout(-time.Second, 1)}); err == nil {
		t.Error("a negative time-out was taken")
	}
}

// TestDebug has debug= raise what is said at debug level.
func TestDebug(t *testing.T) {
	for args, want := range map[string]string{"": "level=WARN msg=loud n=1\n", "?debug=0": "level=WARN msg=loud n=1\n", "?debug=1": "level=INFO msg=low n=1\nlevel=WARN msg=loud n=1\n"} {
		var said bytes.Buffer
		log := slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		c, err := options("nfs://filer/e"+args, []Option{WithLogger(log)})
		if err != nil {
			t.Fatal(err)
		}
		c.Log.With("n", 1).Debug("low")
		c.Log.With("n", 1).Warn("loud")
		if said.String() != want {
			t.Errorf("%q: %q, want %q", args, &said, want)
		}
	}
}

// TestAttrCacheOptions: an option stands above the URL, and times that make no sense are errors.
func TestAttrCacheOptions(t *testing.T) {
	for _, c := range []struct {
		args string
		opts []Option
		want bool
	}{
		{"", nil, false},
		{"?ac", nil, true},
		{"?actimeo=0", nil, false},
		{"?noac", []Option{WithAttrCache(AttrTimes{}, LookupCacheAll)}, true},
		{"?actimeo=5", []Option{WithoutAttrCache()}, false},
	} {
		o, err := options("nfs://filer/e"+c.args, c.opts)
		if err != nil || o.keepsAttrs() != c.want {
			t.Errorf("%q and %d options: kept is not %t, %v", c.args, len(c.opts), c.want, err)
		}
	}
	o, err := options("nfs://filer/e?actimeo=5", []Option{WithAttrCache(AttrTimes{}, LookupCachePositive)})
	if err != nil || o.attrTimes != DefaultAttrTimes() || o.lookups != LookupCachePositive {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range []Option{
		WithAttrCache(AttrTimes{FileMin: 2, FileMax: 1}, LookupCacheAll), WithAttrCache(AttrTimes{DirMin: 2, DirMax: 1}, LookupCacheAll),
		WithAttrCache(AttrTimes{FileMin: -1}, LookupCacheAll), WithAttrCache(AttrTimes{}, LookupCacheNone+1),
	} {
		if _, err := options("nfs://filer/e", []Option{bad}); err == nil {
			t.Error("times, or names, that make no sense are taken")
		}
	}
}

// TestStatsJSON has what is needed to draw a table, and no more.
func TestStatsJSON(t *testing.T) {
	var h metric.Histogram
	for i := range 100 {
		h.Duration(time.Duration(i) * time.Millisecond)
	}
	text, err := json.Marshal(Stats{Procs: []ProcStats{{Name: "READ", Calls: 100, Statuses: map[string]uint64{"STALE": 1}, Latency: h.Snapshot()}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"name":"READ"`, `"statuses":{"STALE":1}`, `"latency":{"count":100,"mean_ns":49500000,`, `"queued":{"count":0,`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s has no %s", text, want)
		}
	}
}
