//go:build linux

package outsider

import (
	"fmt"
	"sync"
	"testing"
)

// held begins a command that copies from a server, which stops answering after some of the bytes, until
// release is called.
func (b *box) held(args func(url string) []string) (r *running, release func()) {
	b.Helper()
	for i := range 50 {
		b.write(b.path("srv", fmt.Sprint(i)), string(pattern(50_000, byte(i))))
	}
	hold, stopped := make(chan struct{}), make(chan struct{})
	p := b.proxy(b.serve(b.path("srv")), func(p *proxy) {
		p.back = b.whenPassed(500_000, func() {
			close(stopped)
			<-hold
		})
	})
	release = sync.OnceFunc(func() { close(hold) })
	b.Cleanup(release)
	r = b.begin(args(p.url())...)
	<-stopped
	return r, release
}

// TestJobCountsWhileRunning: job.json of a job that runs says how far it is.
func TestJobCountsWhileRunning(t *testing.T) {
	b := newBox(t)
	r, release := b.held(func(url string) []string {
		return []string{"cp", "-r", "--parallel=4", "--job", "j", url, b.path("copy")}
	})
	b.until("it says what was counted", func() bool {
		got := b.jobFile("j")
		counts, _ := got["counts"].(map[string]any)
		found, _ := counts["found_bytes"].(float64)
		return got["state"] == "running" && found > 0 && counts["totals_final"] != nil
	})
	release()
	if status := r.status(); status != 0 {
		t.Errorf("status %d\n%s", status, r.err)
	}
	if got := b.jobFile("j")["counts"].(map[string]any); got["files"] != 50.0 || got["totals_final"] != 1.0 {
		t.Errorf("in the end %v", got)
	}
}
