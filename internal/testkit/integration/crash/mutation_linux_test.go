package crash

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

const (
	siteSeeds    = 20  // find the places
	missingSeeds = 300 // within which the lack of each must be noticed
)

// TestCrashMissingSync leaves out the syncs of one place in the server after the
// other. Each time, clients must lose what they were told was safe. Else the suite would
// not notice if that call went, or the call is not needed.
func TestCrashMissingSync(t *testing.T) {
	need.Time(t, "whether the lack of each sync is noticed")
	for _, mode := range []localfs.Mode{localfs.HandlesKernel, localfs.HandlesMap} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			if mode == localfs.HandlesKernel && os.Geteuid() != 0 {
				t.Skip("the kernel's handles are root's")
			}
			sites := make(map[string]int)
			for seed := range uint64(siteSeeds) {
				c, _ := lossesOf(t, mode, seed+1, 1, crashLives, "")
				for site, n := range c.sys.sites {
					sites[site] += n
				}
			}
			for _, site := range slices.Sorted(maps.Keys(sites)) {
				spared := slices.ContainsFunc(spare, func(s string) bool { return strings.HasPrefix(site, s) })
				// What both kinds of handles have in common is tried with one, for time.
				again := mode == localfs.HandlesMap && os.Geteuid() == 0 && !strings.HasPrefix(site, "handlemap.")
				if !spared && (!again || os.Getenv("NFSBOX_SOAK") != "") {
					missing(t, mode, site, sites[site])
				}
			}
		})
	}
}

// spare are the syncs that the disk that forgets can do without, by how their
// places begin, in either mode.
var spare = []string{
	// What is new in a directory becomes stable with the names in it. A file
	// system that logs a later change of owner or mode on its own needs the sync.
	"(*View).Create (*FS).syncAll",
	// Of an object that gets a further name, nothing but the number of its names
	// has changed, which the kernel counts.
	"(*View).Link (*FS).syncAll", "(*View).Link (*host).syncNow",
}

// missing runs the suite without the syncs of one place until it fails.
func missing(t *testing.T, mode localfs.Mode, site string, seen int) {
	t.Helper()
	skipped := 0
	for seed := range uint64(missingSeeds) {
		c, lost := lossesOf(t, mode, seed+1, 1, crashLives, site)
		skipped += c.sys.leftOut
		if len(lost) > 0 {
			t.Logf("%s, seen %d times: noticed with seed %d: %s", site, seen, seed+1, strings.Split(lost[0], "\n")[0])
			return
		}
	}
	t.Errorf("%s, seen %d times, left out %d times: nobody notices", site, seen, skipped)
}
