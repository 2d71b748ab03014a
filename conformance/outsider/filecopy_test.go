//go:build linux

package outsider

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestFileDestMoved: the directory above DEST is moved, replaced or removed while one file is
// copied. The copy is not where it was asked for, so that it is no success. That the file itself
// is gone again from its directory is none of ours.
func TestFileDestMoved(t *testing.T) {
	for name, c := range map[string]struct {
		dest   string // below to
		again  bool   // the directory is made anew
		status int
		lose   func(b *box, dir string) error
	}{
		"moved":          {dest: "dir/f", status: 2},
		"replaced":       {dest: "dir/f", again: true, status: 2},
		"of a directory": {dest: "dir/", status: 2},
		"above":          {dest: "dir/sub/f", status: 2},
		"of a link":      {dest: "link", status: 2},
		"not touched":    {dest: "dir/f", lose: func(*box, string) error { return nil }},
		"others there":   {dest: "dir/f", lose: func(_ *box, dir string) error { return os.WriteFile(dir+"/other", nil, 0o644) }},
	} {
		for _, where := range []string{"local", "server"} {
			t.Run(name+" "+where, func(t *testing.T) {
				b := newBox(t)
				b.write(b.path("srv", "from", "f"), string(pattern(3<<20, 1)))
				b.no(os.MkdirAll(b.path("srv", "to", "dir", "sub"), 0o755))
				b.write(b.path("srv", "to", "dir", "target"), "old")
				b.no(os.Symlink("dir/target", b.path("srv", "to", "link")))
				dir := b.path("srv", "to", "dir")
				move := sync.OnceFunc(func() {
					err := error(nil)
					if c.lose != nil {
						err = c.lose(b, dir)
					} else if err = os.Rename(dir, b.path("srv", "to", "away")); err == nil && c.again {
						err = os.Mkdir(dir, 0o755)
					}
					if err != nil {
						t.Error(err)
					}
					if where == "server" {
						time.Sleep(1100 * time.Millisecond) // a short copy to a server is not looked up again
					}
				})
				s := b.serve(b.path("srv"))
				p := b.proxy(s, func(p *proxy) {
					if where == "local" {
						p.back = b.whenPassed(1_000_000, move)
					} else {
						p.towards = b.whenPassed(1_000_000, move)
					}
				})
				source, dest := p.url()+"from/f", b.path("srv", "to")+"/"+c.dest
				if where == "server" {
					source, dest = b.path("srv", "from", "f"), p.url()+"to/"+c.dest
				}
				r := b.run("cp", "--verify", source, dest)
				if r.status != c.status || c.status != 0 && (!strings.Contains(r.stderr, dest+": ") || !strings.Contains(r.stderr, "during the copy")) {
					t.Errorf("exit status %d\n%.3000s", r.status, r.stderr)
				}
			})
		}
	}
}

// TestProc: a file of /proc has a size of 0, and contents.
func TestProc(t *testing.T) {
	const file = "/proc/version"
	b := newBox(t)
	b.must(0, "cp", "--verify", file, b.path("v"))
	if want := b.text(file); b.text(b.path("v")) != want || want == "" {
		t.Errorf("the copy has %q, want %q", b.text(b.path("v")), want)
	}
	// Its times are those of the first look at it, so that they may differ.
	b.write(b.path("empty"), "")
	if r := b.run("verify", file, b.path("empty")); r.status != 3 {
		t.Errorf("an empty file is taken for it\n%s", r.stderr)
	}
}
