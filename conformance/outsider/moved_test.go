//go:build linux

package outsider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestDestReplaced: somebody moves DEST away during the copy and makes it anew. The copy is
// whole, but not under the name that was asked for, so that it is no success.
func TestDestReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		there  bool // DEST was there, so that the copy is in it
		moved  string
		again  bool // DEST is made anew
		tail   string
		local  bool
		verify bool
	}{
		"DEST that the copy becomes":     {moved: "dst", again: true, verify: true},
		"DEST that receives the copy":    {there: true, moved: "dst", again: true},
		"DEST that is gone":              {moved: "dst"},
		"what is above DEST":             {moved: "up", again: true, tail: "up/"},
		"the copy in DEST":               {there: true, moved: "dst/src", again: true, verify: true},
		"a local DEST":                   {there: true, moved: "dst", again: true, local: true},
		"a local DEST that becomes copy": {moved: "dst", again: true, local: true, verify: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			for i := range 100 {
				b.write(b.path("srv", "from", "src", fmt.Sprint(i)), string(pattern(40_000, byte(i))))
			}
			b.no(os.MkdirAll(b.path("srv", "to", c.tail), 0o755))
			if c.there {
				b.no(os.Mkdir(b.path("srv", "to", "dst"), 0o755))
			}
			move := sync.OnceFunc(func() {
				from, to := b.path("srv", "to", c.moved), b.path("srv", "to", "away")
				if err := os.Rename(from, to); err != nil {
					t.Error(err)
				}
				if c.again {
					if err := os.Mkdir(from, 0o755); err != nil {
						t.Error(err)
					}
				}
			})
			s := b.serve(b.path("srv"))
			p := b.proxy(s, func(p *proxy) {
				if c.local {
					p.back = b.whenPassed(1_000_000, move)
				} else {
					p.towards = b.whenPassed(1_000_000, move)
				}
			})
			source, dest := b.path("srv", "from", "src"), p.url()+"to/"+c.tail+"dst"
			if c.local {
				source, dest = p.url()+"from/src", b.path("srv", "to", "dst")
			}
			args := []string{"cp", "-r", "--parallel=4", source, dest}
			if c.verify {
				args = append(args, "--verify")
			}
			r := b.run(args...)
			if r.status != 2 || !strings.Contains(r.stderr, "nfsbox: ") || !strings.Contains(r.stderr, dest+": ") ||
				!strings.Contains(r.stderr, "during the copy") {
				t.Errorf("exit status %d\n%.3000s", r.status, r.stderr)
			}
		})
	}
}

// TestSourceDirsMove: directories of the source are moved within it, or out of it, before their
// turn comes. A copy finds them where they are, or tells of each by name, and is no success then.
// A comparison tells of them. What has left the source is counted.
func TestSourceDirsMove(t *testing.T) {
	for _, verb := range []string{"cp", "verify"} {
		for _, where := range []string{"within", "out"} {
			t.Run(verb+" "+where, func(t *testing.T) {
				b := newBox(t)
				for i := range 60 {
					b.write(b.path("src", fmt.Sprint("d", i), "sub", "f"), string(pattern(40_000, byte(i))))
				}
				b.no(os.MkdirAll(b.path("src", "aside"), 0o755))
				b.no(os.MkdirAll(b.path("out"), 0o755))
				b.no(os.MkdirAll(b.path("srv"), 0o755))
				s := b.serve(b.path("srv"))
				if verb == "verify" {
					b.must(0, "cp", "-r", b.path("src"), s.url+"dst")
				}
				to := b.path("src", "aside")
				if where == "out" {
					to = b.path("out")
				}
				var gone []string
				move := sync.OnceFunc(func() {
					for _, name := range b.names(b.path("src")) {
						read := verb == "cp" && exists(b.path("srv", "dst", name))
						if strings.HasPrefix(name, "d") && !strings.Contains(name, "/") && !read {
							if err := os.Rename(b.path("src", name), filepath.Join(to, name)); err != nil {
								t.Error(err)
							}
							gone = append(gone, name)
						}
					}
				})
				p := b.proxy(s, func(p *proxy) { p.towards, p.back = b.whenPassed(1_000_000, move), b.whenPassed(1_000_000, move) })
				args := []string{verb, "--parallel=1", b.path("src"), p.url() + "dst"}
				if verb == "cp" {
					args = append(args, "-r")
				}
				r := b.run(args...)
				told := strings.Count(r.stderr, "was moved to aside/d")
				switch {
				case len(gone) == 0 || !strings.Contains(r.stderr, "directories vanished"):
					t.Errorf("%d directories were moved", len(gone))
				case where == "within" && verb == "verify" && (r.status != 2 || told == 0), where == "out" && (told > 0 || verb == "cp" && r.status != 0):
					t.Errorf("%d directories were moved, %d told of", len(gone), told)
				case where == "within" && verb == "cp" && (r.status == 0) != (told == 0):
					t.Errorf("%d directories were moved, %d told of, and the exit status is %d", len(gone), told, r.status)
				}
				for _, name := range gone {
					if verb == "cp" && where == "within" && !exists(b.path("srv", "dst", "aside", name, "sub", "f")) && !strings.Contains(r.stderr, "moved to aside/"+name+" ") {
						t.Errorf("%s is in no copy, and not told of", name)
					}
				}
				if t.Failed() {
					t.Logf("exit status %d\n%.3000s", r.status, r.stderr)
				}
			})
		}
	}
}

// exists reports whether something has the name.
func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
