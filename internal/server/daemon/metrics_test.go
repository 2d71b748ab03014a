package daemon

import (
	"regexp"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// TestMetricsOfOneDirectory exports a directory twice, in ways that have it open
// twice: its counts are those of both.
func TestMetricsOfOneDirectory(t *testing.T) {
	need.Root(t, "the map of handles, which anybody else has, serves a directory once")
	limit := regexp.MustCompile(`(?m)^nfsbox_descriptors_limit\{dir="[^"]*"\} (\d+)$`)
	at := regexp.MustCompile(`msg=metrics url=(\S+)`)
	var got []string
	for _, twice := range []bool{false, true} {
		c := confOf(t.TempDir(), t.TempDir())
		c.MaxOpenFiles, c.Metrics = 32, "127.0.0.1:0"
		if twice {
			c.Exports = append(c.Exports, config.Export{Path: "/again", Dir: c.Exports[0].Dir, LocalWriters: true, FSID: 7})
		}
		_, log, _ := run(t, c)
		_, text := get(t, at.FindStringSubmatch(log.String())[1]+"/metrics")
		all := limit.FindAllStringSubmatch(text, -1)
		if len(all) != 1 {
			t.Fatalf("%d rows of one directory", len(all))
		}
		got = append(got, all[0][1])
	}
	if got[0] != "32" || got[1] != "64" {
		t.Errorf("a directory that is open once, and twice, may have %q descriptors", got)
	}
}
