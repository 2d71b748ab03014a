//go:build linux

package posixsuite

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
)

// bound is how long a check waits for what has to come.
const bound = 60 * time.Second

// Place is an empty directory that is judged, by all names that it has. The checks make what they need in it, and
// remove it.
type Place struct {
	Dir   string // by a mount
	Other string // by a second mount of the same server; "": there is none
	Local string // on the server's host; "": it is not to be reached
	Locks bool   // locks are the server's: they hold between the two mounts, and against programs on its host
}

// in is the same directory below all of them.
func (p Place) in(name string) Place {
	for _, dir := range []*string{&p.Dir, &p.Other, &p.Local} {
		if *dir != "" {
			*dir = filepath.Join(*dir, name)
		}
	}
	return p
}

// checks are what is judged, and of what a check needs.
var checks = []struct {
	name  string
	check func(*testing.T, Place)
	needs func(Place) string // what the place lacks for it; nil: nothing
}{
	{"open", alone(testOpen), nil},
	{"append", alone(testAppend), nil},
	{"rename", alone(testRename), nil},
	{"links", alone(testLinks), nil},
	{"unlink open", alone(testUnlinkOpen), nil},
	{"attributes", alone(testAttributes), nil},
	{"times", alone(testTimes), nil},
	{"permissions", alone(testPermissions), nil},
	{"truncate", alone(testTruncate), nil},
	{"large offsets", alone(testLargeOffsets), nil},
	{"shared mapping", alone(testMapping), nil},
	{"nodes", alone(testNodes), nil},
	{"listing", alone(testListing), nil},
	{"space", alone(testSpace), nil},
	{"direct", alone(testDirect), nil},
	{"two clients", testClients, second},
	{"one makes it", testExclusive, second},
	{"listing of another's changes", testOthersListing, second},
	{"locks", testLocks, locks},
	{"locks carry bytes", testLocksCarry, locks},
	{"flock", testFlock, locks},
}

func alone(check func(*testing.T, string)) func(*testing.T, Place) {
	return func(t *testing.T, p Place) { check(t, p.Dir) }
}

func second(p Place) string {
	if p.Other == "" {
		return "a second mount"
	}
	return ""
}

func locks(p Place) string {
	if !p.Locks {
		return "locks of the server"
	}
	return second(p)
}

// Run has all checks judge a place, each in a directory of its own.
func Run(t *testing.T, p Place) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if c.needs != nil {
				if lacks := c.needs(p); lacks != "" {
					t.Skip("NOT TESTED for want of " + lacks)
				}
			}
			at := p.in(c.name)
			expect.OK(t, os.Mkdir(at.Dir, 0o755))
			if at.Other != "" {
				expect.Soon(t, "the other mount has the directory", func() bool { _, err := os.Stat(at.Other); return err == nil })
			}
			c.check(t, at)
			// No hidden name is left behind for ever.
			expect.Soon(t, "all is removed", func() bool { return os.RemoveAll(at.Dir) == nil })
		})
	}
}
