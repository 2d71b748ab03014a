package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// maxMetrics bounds a page of metrics, in bytes. A longer one is an error.
	maxMetrics = 16 << 20
	// maxMetric bounds a line of it.
	maxMetric = 64 << 10
	// maxProcedures bounds the procedures that a page has counts of.
	maxProcedures = 256

	// metricsTime bounds the fetching of a page.
	metricsTime = 10 * time.Second

	// A server counts a call when its reply has gone, which may be a moment after
	// the client has it. So often, at such intervals, is asked again until the
	// counts stand still.
	settleTries = 25
	settleTime  = 20 * time.Millisecond
)

// checkMetrics refuses what is no URL of metrics, and completes one that has no path.
func (o *Options) checkMetrics() error {
	if o.ServerMetrics == "" {
		return nil
	}
	u, err := url.Parse(o.ServerMetrics)
	if err != nil || !isAPI(o.ServerMetrics) || u.Host == "" {
		return usage("%s: want the URL of a server's metrics, such as http://127.0.0.1:9464/metrics", redacted(o.ServerMetrics))
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/metrics"
		o.ServerMetrics = u.String()
	}
	return nil
}

// page is what an nfsbox server says of itself at one time.
type page struct {
	cpu     time.Duration
	threads int
	calls   map[string]uint64 // by procedure, of NFS and of the file API
}

func fetch(ctx context.Context, c *http.Client, rawURL string) (p *page, err error) {
	ctx, cancel := context.WithTimeout(ctx, metricsTime)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		return nil, err
	}
	answer, err := c.Do(q)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", redacted(rawURL), answer.Status)
	}
	if p, err = parsePage(io.LimitReader(answer.Body, maxMetrics+1)); err != nil {
		return nil, fmt.Errorf("%s: %w", redacted(rawURL), err)
	}
	return p, nil
}

// parsePage reads metrics in Prometheus' text, and takes those that are wanted.
func parsePage(r io.Reader) (*page, error) {
	p := &page{calls: make(map[string]uint64)}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxMetric)
	size, ours := 0, false
	for lines.Scan() {
		if size += len(lines.Bytes()) + 1; size > maxMetrics {
			return nil, fmt.Errorf("more than %d bytes", maxMetrics)
		}
		// A value with a timestamp behind it is not what ours has.
		name, value, ok := cutLast(lines.Text())
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		ours = ours || strings.HasPrefix(name, "nfsbox_")
		if err := p.take(name, value); err != nil {
			return nil, err
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if !ours {
		return nil, errors.New("these are not the metrics of an nfsbox server")
	}
	return p, nil
}

// cutLast cuts a line before its last word.
func cutLast(line string) (name, value string, ok bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 {
		return "", "", false
	}
	return line[:i], line[i+1:], true
}

// take takes one metric.
func (p *page) take(name, value string) error {
	var procedure string
	switch family, labels, _ := strings.Cut(name, "{"); family {
	case "nfsbox_rpc_calls_total":
		_, rest, _ := strings.Cut(labels, `procedure="NFSPROC3_`)
		procedure, _, _ = strings.Cut(rest, `"`)
	case "nfsbox_api_calls_total":
		_, rest, _ := strings.Cut(labels, `procedure="`)
		procedure, _, _ = strings.Cut(rest, `"`)
	case "nfsbox_process_threads", "process_cpu_seconds_total":
	default:
		return nil
	}
	x, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(x) || x < 0 || x > 1<<53 {
		return fmt.Errorf("%.100s has the value %.100q", name, value)
	}
	switch {
	case procedure != "":
		if _, known := p.calls[procedure]; !known && len(p.calls) == maxProcedures {
			return fmt.Errorf("more than %d procedures", maxProcedures)
		}
		p.calls[procedure] += uint64(x)
	case name == "nfsbox_process_threads":
		p.threads = int(min(x, math.MaxInt32))
	case name == "process_cpu_seconds_total":
		p.cpu = time.Duration(min(x*float64(time.Second), math.MaxInt64/2))
	}
	return nil
}
