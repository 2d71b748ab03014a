package v3suite

import (
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// TestMatrix finds every pair of the RFC either covered or exempt, and nothing
// else there.
func TestMatrix(t *testing.T) {
	listed, seen := expand(rfc), expand(covered)
	for _, p := range listed {
		exempted := exempt[p.status] != "" || exemptPairs[p] != ""
		if p.status < 0 {
			t.Errorf("the RFC's list for %s has a status that does not exist", p.proc)
		}
		switch is := slices.Contains(seen, p); {
		case is && exemptPairs[p] != "":
			t.Errorf("%s is covered, and exempt: %s", p, exemptPairs[p])
		case !is && !exempted:
			t.Errorf("%s is neither covered nor exempt", p)
		}
	}
	for _, p := range seen {
		if !slices.Contains(listed, p) {
			t.Errorf("%s is covered, and not in the RFC", p)
		}
	}
	for p := range exemptPairs {
		if !slices.Contains(listed, p) {
			t.Errorf("%s is exempt, and not in the RFC", p)
		}
	}
}

// TestMatrixProcedures finds a row in either list for every procedure.
func TestMatrixProcedures(t *testing.T) {
	if len(rfc) != len(nfs3.NFS_V3.Procs) || len(covered) != len(rfc) {
		t.Fatalf("%d and %d rows for %d procedures", len(rfc), len(covered), len(nfs3.NFS_V3.Procs))
	}
	for i, p := range nfs3.NFS_V3.Procs {
		if name := procName(&p); rfc[i].proc != name || covered[i].proc != name {
			t.Errorf("row %d is of %s and %s, want %s", i, rfc[i].proc, covered[i].proc, name)
		}
	}
}

// TestMatrixStatuses finds every status of section 2.6 that the specification
// names in the list that names are looked up in.
func TestMatrixStatuses(t *testing.T) {
	for s := nfs3.Nfsstat3(0); s <= nfs3.NFS3ERR_JUKEBOX; s++ {
		named := strings.HasPrefix(s.String(), "NFS3")
		if named != slices.Contains(statuses, s) {
			t.Errorf("status %d: named %v, listed %v", s, named, !named)
		}
	}
}
