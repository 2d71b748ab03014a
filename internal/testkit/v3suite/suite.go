package v3suite

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/oncrpc"
)

// Target is a server, and what is known of it.
type Target struct {
	// Dial connects to the NFS program, DialMount to MOUNT; nil is Dial.
	Dial, DialMount func(ctx context.Context) (net.Conn, error)

	// Export is the path of an export that may be written to. The suite makes a
	// directory there and leaves it behind.
	Export string

	// More exports, for what one alone cannot show; without them the tests that
	// need them are skipped.
	ReadOnly string // refuses changes, and holds a directory, "dir", and a file in it, "file"
	Other    string // on another file system than Export
	Small    string // on a file system with room for at most maxSmall bytes

	// Identities says that callers are enforced, and that user 0 may do anything.
	// Otherwise all calls are made as Caller.
	Identities bool
	Caller     oncrpc.AuthSys

	// Differences are tests ("rename/over-full-directory") that do not hold, each
	// with the reason. They are run all the same: one that holds fails the run.
	Differences map[string]string

	// Sometimes are those of the Differences that hold now and then.
	Sometimes []string
}

// needs are what a test wants of a target.
type needs uint8

const (
	needsIdentities needs = 1 << iota
	needsReadOnly
	needsOther
	needsSmall
)

// lacks is why a target is not fit for a test, or "".
func (t *Target) lacks(n needs) string {
	switch {
	case n&needsIdentities != 0 && !t.Identities:
		return "this server does not enforce who is calling"
	case n&needsReadOnly != 0 && t.ReadOnly == "":
		return "there is no export for reading only"
	case n&needsOther != 0 && t.Other == "":
		return "there is no second file system"
	case n&needsSmall != 0 && t.Small == "":
		return "there is no small file system"
	}
	return ""
}

// test is one subtest of a group.
type test struct {
	name  string
	run   func(*env)
	needs needs
}

// group is the tests of one file.
type group struct {
	name  string
	tests []test
}

// groups are the tests in the order in which they run: procedures by their
// numbers, then what concerns them all.
func groups() []group {
	return []group{
		{"null", nullTests},
		{"getattr", getattrTests},
		{"setattr", setattrTests},
		{"lookup", lookupTests},
		{"access", accessTests},
		{"readlink", readlinkTests},
		{"read", readTests},
		{"write", writeTests},
		{"create", createTests},
		{"mkdir", mkdirTests},
		{"symlink", symlinkTests},
		{"mknod", mknodTests},
		{"remove", removeTests},
		{"rmdir", rmdirTests},
		{"rename", renameTests},
		{"link", linkTests},
		{"readdir", readdirTests},
		{"readdirplus", readdirplusTests},
		{"fsstat", fsstatTests},
		{"fsinfo", fsinfoTests},
		{"pathconf", pathconfTests},
		{"commit", commitTests},
		{"stale", handleTests(staleHandle)},
		{"badhandle", handleTests(badHandle)},
		{"notdir", notDirTests()},
		{"names", namesTests()},
		{"readonly", readOnlyTests()},
		{"denied", deniedTests()},
		{"full", fullTests},
		{"xdev", xdevTests},
		{"identity", identityTests},
		{"auth", authTests},
		{"rpc", rpcTests},
		{"garbage", garbageTests()},
		{"mount", mountTests},
	}
}

// Run runs the suite against a server, as subtests of t named group/test.
func Run(t *testing.T, target Target) {
	s, failed := newSuite(t, target)
	if len(failed) > 0 {
		t.Fatalf("the export is of no use: %q", failed)
	}
	all := groups()
	for _, fault := range target.unknown(all) {
		t.Error(fault)
	}
	for _, g := range all {
		t.Run(g.name, func(t *testing.T) {
			for _, test := range g.tests {
				t.Run(test.name, func(t *testing.T) { s.judge(t, g.name, &test) })
			}
		})
	}
	t.Run("coverage", s.coverage)
}

// judge runs one test, and holds what it finds against what is expected.
func (s *suite) judge(t *testing.T, group string, test *test) {
	if why := s.target.lacks(test.needs); why != "" {
		s.partial = true
		t.Skip(why)
	}
	name := group + "/" + test.name
	faults, excuse := s.target.weigh(name, s.run(t, name, test))
	for _, f := range faults {
		t.Error(f)
	}
	if excuse != "" {
		s.partial = true
		t.Skip(excuse)
	}
}

// weigh holds what a test has found against the differences: what is a fault,
// and what is excused.
func (t *Target) weigh(name string, found []string) (faults []string, excuse string) {
	reason, known := t.Differences[name]
	switch {
	case !known:
		return found, ""
	case len(found) > 0:
		return nil, fmt.Sprintf("a known difference: %s\n%s", reason, found[0])
	case !slices.Contains(t.Sometimes, name):
		return []string{"a difference that no longer occurs: " + reason}, ""
	}
	return nil, ""
}

// coverage fails if a status that the matrix has for provoked was not seen. A
// target on which tests were skipped cannot show all.
func (s *suite) coverage(t *testing.T) {
	if s.partial {
		t.Skip("not all tests were run, or hold")
	}
	for _, p := range provoked() {
		if !s.seen[p] {
			t.Errorf("%s was not provoked, and the matrix says that it is", p)
		}
	}
}

// unknown are the names in Differences that no test has, and those in Sometimes
// that are in no Differences.
func (t *Target) unknown(all []group) (faults []string) {
	known := make(map[string]bool)
	for _, g := range all {
		for _, test := range g.tests {
			known[g.name+"/"+test.name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Differences)) {
		if !known[name] {
			faults = append(faults, fmt.Sprintf("Differences names %q, which is no subtest", name))
		}
	}
	for _, name := range t.Sometimes {
		if t.Differences[name] == "" {
			faults = append(faults, fmt.Sprintf("Sometimes names %q, which is not in Differences", name))
		}
	}
	return faults
}
