package vfstest

import (
	"maps"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// Config says what is tested, and which tests it is known to fail.
type Config struct {
	// New makes an empty, writable FS and returns the view of its root user:
	// the superuser, or the process's own user. It is cleaned up by t.Cleanup.
	New func(t *testing.T) vfs.FS

	// Restart, if not nil, restarts what serves f and returns an FS on the same
	// tree. f is not used again. Without it the tests of restarts are skipped.
	Restart func(t *testing.T, f vfs.FS) vfs.FS

	// Freeze, if not nil, says that what is judged cannot be changed. The suite fills the tree of New, and Freeze
	// hands it over, as another FS: a snapshot of it, a view that is read-only. Run then runs the tests of
	// [RunReadOnly] and compares the two trees; every change must be vfs.ErrROFS. Restart opens that FS again,
	// whose handles and places of listings are to stay valid. Groups are not looked at.
	Freeze func(t *testing.T, f vfs.FS) vfs.FS

	// Callers says that the FS can act for any caller and enforces modes: the
	// view that New returns is then the superuser's.
	Callers bool

	// Groups are the only groups to run ("lock"); nil is all.
	Groups []string

	// Differences are subtests ("rename/over-open-file") that do not hold, each
	// with the reason. They are skipped.
	Differences map[string]string
}

// test is one subtest of a group.
type test struct {
	name string
	run  func(*env)
}

// group is the tests of one file. They share an FS, and each has a directory of
// its own there.
type group struct {
	name    string
	callers bool // only if Config.Callers
	tests   []test
}

var groups = []group{
	{name: "getattr", tests: getattrTests},
	{name: "setattr", tests: setattrTests},
	{name: "access", tests: accessTests},
	{name: "lookup", tests: lookupTests},
	{name: "readlink", tests: readlinkTests},
	{name: "create", tests: createTests},
	{name: "mkdir", tests: mkdirTests},
	{name: "symlink", tests: symlinkTests},
	{name: "mknod", tests: mknodTests},
	{name: "link", tests: linkTests},
	{name: "remove", tests: removeTests},
	{name: "rename", tests: renameTests},
	{name: "open", tests: openTests},
	{name: "read", tests: readTests},
	{name: "write", tests: writeTests},
	{name: "commit", tests: commitTests},
	{name: "put", tests: putTests},
	{name: "truncate", tests: truncateTests},
	{name: "readdir", tests: readdirTests},
	{name: "info", tests: infoTests},
	{name: "handle", tests: handleTests},
	{name: "names", tests: namesTests},
	{name: "identity", tests: identityTests, callers: true},
	{name: "holes", tests: holesTests},
	{name: "lock", tests: lockTests},
	{name: "acl", tests: aclTests},
	{name: "xattr", tests: xattrTests},
	{name: "powers", tests: powersTests},
	{name: "concurrent", tests: concurrentTests},
	{name: "cancel", tests: cancelTests},
	{name: "large", tests: largeTests},
}

// modelName is the subtest that compares with memfs.
const modelName = "model"

// What Run asks of RunModel: always the same, so that a failure repeats.
const (
	modelSeed  = 1813
	modelSteps = 400
)

// Run runs the whole suite as subtests of t, named group/test.
func Run(t *testing.T, c Config) {
	checkDifferences(t, c.Differences)
	if c.Freeze != nil {
		runFrozen(t, c)
		return
	}
	for _, g := range groups {
		if c.Groups == nil || slices.Contains(c.Groups, g.name) {
			t.Run(g.name, func(t *testing.T) { g.run(t, c) })
		}
	}
	if c.Groups != nil {
		return
	}
	t.Run(modelName, func(t *testing.T) {
		c.skipDifference(t, modelName)
		RunModel(t, c, modelSeed, modelSteps)
	})
}

func (g *group) run(t *testing.T, c Config) {
	if g.callers && !c.Callers {
		t.Skip("this file system acts for one caller only")
	}
	x := newFixture(t, c)
	for _, test := range g.tests {
		t.Run(test.name, func(t *testing.T) {
			c.skipDifference(t, g.name+"/"+test.name)
			test.run(newEnv(t, x, test.name))
		})
	}
}

func (c *Config) skipDifference(t *testing.T, name string) {
	if reason, ok := c.Differences[name]; ok {
		t.Skipf("a known difference: %s", reason)
	}
}

// checkDifferences fails t for every name that is not that of a test.
func checkDifferences(t *testing.T, differences map[string]string) {
	t.Helper()
	known := map[string]bool{modelName: true}
	for _, test := range frozenTests {
		known[test.name] = true
	}
	for _, g := range groups {
		for _, test := range g.tests {
			known[g.name+"/"+test.name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(differences)) {
		if !known[name] {
			t.Errorf("Differences names %q, which is no subtest", name)
		}
	}
}
