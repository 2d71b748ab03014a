package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/base/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestCompleteExports: of exports the next part of their paths is offered, once.
func TestCompleteExports(t *testing.T) {
	none := &place.NoExport{URL: &nfsbox.URL{Host: "h", Path: "/"}, Exports: []string{"/home", "/srv/one", "/srv/two", "/sales"}}
	for begun, want := range map[string]string{"": "h:/home/ h:/sales/ h:/srv/", "s": "h:/sales/ h:/srv/", "sr": "h:/srv/", "x": ""} {
		if got := strings.Join(exportsBelow(none, "h:/", begun), " "); got != want {
			t.Errorf("%q: %s, want %s", begun, got, want)
		}
	}
	none = &place.NoExport{URL: &nfsbox.URL{Host: "h", Path: "/srv/"}, Exports: []string{"/home", "/srv/one/a"}}
	if got := exportsBelow(none, "nfs://h/srv/", ""); !slices.Equal(got, []string{"nfs://h/srv/one/"}) {
		t.Error(got)
	}
}

// TestCompleteMany: of a directory with more names than are offered some are.
func TestCompleteMany(t *testing.T) {
	fsys := memfs.New(memfs.Options{})
	root, _, err := fsys.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * maxCompletions {
		if _, _, _, err := fsys.Create(t.Context(), root, fmt.Sprint("f", i), &vfs.CreateHow{Type: vfs.TypeReg}); err != nil {
			t.Fatal(err)
		}
	}
	got := namesIn(t.Context(), &place.Place{FS: fsys}, "h:/", "f", func(s string) string { return s })
	if len(got) != maxCompletions {
		t.Errorf("%d names", len(got))
	}
}
