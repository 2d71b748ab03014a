package daemon

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/nfsbox/nfsbox/fileapi"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// TestMetricNames holds the names of metrics against Prometheus' customs. In
// OpenMetrics a counter goes by its name without "_total", which must be no other's.
func TestMetricNames(t *testing.T) {
	c := apiConfig(t.TempDir(), t.TempDir())
	c.Metrics, c.API.Store, c.LocalIO = "127.0.0.1:0", t.TempDir(), config.LocalIOOff
	u, log, _ := run(t, c)
	mount(t, client(t, u), "/")
	_, err := apiClient(t, apiURL(t, log), fileapi.Options{}).Stat(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	_, text := get(t, metricsURL(log)+"/metrics")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "nfsbox_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	families := make(map[string]string)
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(line, "# TYPE nfsbox_")
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(name, " ")
		family := strings.TrimSuffix(name, "_total")
		if other, taken := families[family]; taken {
			t.Errorf("%s and %s are one family", name, other)
		}
		families[family] = name
	}
}
