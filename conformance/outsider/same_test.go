//go:build linux

package outsider

import (
	"os"
	"testing"
)

// TestLinkOntoItsTarget: a link is copied to the name of what it leads to, and a file to that
// of a link that leads to it. Both are one object, and nothing is left if it is replaced.
func TestLinkOntoItsTarget(t *testing.T) {
	for _, over := range []string{"local", "nfs"} {
		for _, c := range []struct {
			name     string
			args     []string
			from, to string
		}{
			{"link to file", nil, "fs", "f"},
			{"file to link", nil, "f", "fs"},
			{"by an absolute way", nil, "abs", "f"},
			{"link by two", nil, "fs2", "f"},
			{"into a directory", nil, "up/g", "d"},
			{"into a directory, with -r", []string{"-r"}, "up/g", "d/"},
			{"file onto a link in a directory", nil, "f", "into"},
			{"contents", []string{"-r"}, "up/.", "d"},
			{"tree", []string{"-r"}, "tree/sub", "d2"},
			{"names of one link", []string{"-r"}, "twins/.", "d3"},
		} {
			t.Run(over+"/"+c.name, func(t *testing.T) {
				b := newBox(t)
				files := []string{"f", "d/g", "d2/sub/deep/h", "d3/a", "d3/b"}
				for _, name := range files {
					b.write(b.path("srv", name), "precious")
				}
				for _, dir := range []string{"up", "tree/sub/deep", "into", "twins"} {
					b.no(os.MkdirAll(b.path("srv", dir), 0o755))
				}
				for name, target := range map[string]string{
					"fs": "f", "fs2": "fs", "abs": b.path("srv", "f"), "up/g": "../d/g", "into/f": "../f", "tree/sub/deep/h": "../../../d2/sub/deep/h",
					"twins/a": "../d3/b",
				} {
					b.no(os.Symlink(target, b.path("srv", name)))
				}
				b.no(os.Link(b.path("srv", "twins/a"), b.path("srv", "twins/b")))
				root := b.path("srv") + "/"
				if over == "nfs" {
					root = b.serve(b.path("srv")).url
				}
				r := b.run(append(append([]string{"cp"}, c.args...), root+c.from, root+c.to)...)
				harmless := over == "nfs" && c.to == "into" // the link alone is replaced
				if r.status != 1 && r.status != 2 && !harmless {
					t.Errorf("exit status %d\n%s", r.status, r.stderr)
				}
				for _, name := range files {
					if text, err := os.ReadFile(b.path("srv", name)); err != nil || string(text) != "precious" {
						t.Errorf("%s is lost: %q, %v\n%s", name, text, err, r.stderr)
					}
				}
			})
		}
	}
}

// TestLinkOntoAnother: what a link does not lead to it replaces, as ever.
func TestLinkOntoAnother(t *testing.T) {
	b := newBox(t)
	b.write(b.path("old", "name"), "old")
	b.write(b.path("old", "target"), "old")
	b.write(b.path("new", "target"), "new")
	b.no(os.Symlink("target", b.path("new", "name")))
	b.no(os.Symlink("loop", b.path("new", "loop")))
	b.write(b.path("old", "loop"), "old")
	b.must(0, "cp", "-r", b.path("new")+"/.", b.path("old"))
	b.same(b.path("new"), b.path("old"))
	b.must(0, "cp", b.path("new", "name"), b.path("old")+"/")
	b.same(b.path("new"), b.path("old"))
}
