package dirfs

import (
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestHashPages lists by hashes, in pages of every size, from the start and from every
// place, while names come and go.
func TestHashPages(t *testing.T) {
	dir := t.TempDir()
	const n = 50
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("name-%02d", i))
		must(t, os.WriteFile(filepath.Join(dir, want[i]), nil, 0o600))
	}
	seed := maphash.MakeSeed()
	list := func() (*os.File, error) { return os.Open(dir) }
	from := func(most int, at vfs.Pos) (names []string, places []vfs.Pos) {
		p := hashPages{seed: seed, most: most, at: at}
		for round := 0; ; round++ {
			if !p.more() {
				over, err := p.next(list)
				must(t, err)
				if over {
					return names, places
				}
				passing := filepath.Join(dir, "passing-"+fmt.Sprint(round%3))
				must(t, os.WriteFile(passing, nil, 0o600))
				defer func() { _ = os.Remove(passing) }() // it may have gone already
			}
			name, _, next, err := p.take()
			must(t, err)
			if name[0] == 'n' {
				names, places = append(names, string(name)), append(places, next)
			}
		}
	}
	for _, most := range []int{1, 2, 7, n - 1, n, n + 1, 1000} {
		names, places := from(most, vfs.Pos{})
		sorted := slices.Sorted(slices.Values(names))
		if !slices.Equal(sorted, want) {
			t.Fatalf("pages of %d: %d names", most, len(names))
		}
		for i := range places {
			if rest, _ := from(most, places[i]); !slices.Equal(rest, names[i+1:]) {
				t.Fatalf("pages of %d, behind %d: %d names, want %d", most, i, len(rest), n-1-i)
			}
		}
	}
	other := hashPages{seed: maphash.MakeSeed(), most: 10, at: vfs.Pos{Cookie: 1, Verf: vfs.Verifier{1}}}
	if _, err := other.next(list); err != vfs.ErrBadCookie { //nolint:errorlint // returned as it is
		t.Errorf("a place of another listing: %v", err)
	}
}
