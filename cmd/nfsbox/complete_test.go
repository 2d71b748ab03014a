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
	for begun, want := range map[string]string{"": "h:/HOME/ h:/SALES/ h:/SRV/", "s": "h:/SALES/ h:/SRV/", "sr": "h:/SRV/", "x": ""} {
		if got := strings.Join(exportsBelow(none, "h:/", begun, strings.ToUpper), " "); got != want {
			t.Errorf("%q: %s, want %s", begun, got, want)
		}
	}
	none = &place.NoExport{URL: &nfsbox.URL{Host: "h", Path: "/srv/"}, Exports: []string{"/home", "/srv/one/a"}}
	if got := exportsBelow(none, "nfs://h/srv/", "", escapeName); !slices.Equal(got, []string{"nfs://h/srv/one/"}) {
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

// TestCompleteEscapes: a name in a URL has no character that means something to a shell, and is
// the same name when the URL is read.
func TestCompleteEscapes(t *testing.T) {
	var name []byte
	for c := 1; c < 256; c++ {
		if c != '/' {
			name = append(name, byte(c))
		}
	}
	got := escapeName(string(name))
	if strings.ContainsAny(got, special) {
		t.Errorf("special characters in %s", got)
	}
	if u, err := nfsbox.ParseURL("nfs://h/" + got); err != nil || u.Path != "/"+string(name) {
		t.Errorf("%q, %v", u, err)
	}
}
