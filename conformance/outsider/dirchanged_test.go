//go:build linux

package outsider

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// TestDirMovedIntoListed: directories are moved from a part of the source that is not listed yet
// into one that is done. They are in the copy, on this host and on a server, and nothing is told.
// A comparison, which does not look again, tells of the directory that has changed.
func TestDirMovedIntoListed(t *testing.T) {
	for _, verb := range []string{"cp", "verify"} {
		for _, where := range []string{"local", "server"} {
			t.Run(verb+" "+where, func(t *testing.T) {
				b := newBox(t)
				src, dst := b.path("srv", "src"), b.path("srv", "dst")
				b.no(os.MkdirAll(src, 0o755))
				b.write(b.path("srv", "src", "done", "f"), "first")
				for i := range 40 {
					b.write(b.path("srv", "src", fmt.Sprintf("d%02d", i), "sub", "f"), string(pattern(60_000, byte(i))))
				}
				s := b.serve(b.path("srv"))
				if verb == "verify" {
					b.must(0, "cp", "-r", src, dst)
				}
				moved := 0
				move := sync.OnceFunc(func() {
					for i := range 40 {
						name := fmt.Sprintf("d%02d", i)
						if verb == "verify" || !exists(b.path("srv", "dst", name)) {
							if err := os.Rename(b.path("srv", "src", name), b.path("srv", "src", "done", name)); err != nil {
								t.Error(err)
							}
							moved++
						}
					}
				})
				p := b.proxy(s, func(p *proxy) {
					if verb == "cp" && where == "local" {
						p.towards = b.whenPassed(600_000, move)
					} else {
						p.back = b.whenPassed(600_000, move)
					}
				})
				source, dest := src, p.url()+"dst"
				if where == "server" {
					source, dest = p.url()+"src", dst
				}
				args := []string{verb, "--parallel=1", source, dest}
				if verb == "cp" {
					args = append(args, "-r")
				}
				r := b.run(args...)
				if moved == 0 {
					t.Fatal("nothing was moved")
				}
				if verb == "verify" {
					if r.status != 2 || !strings.Contains(r.stderr, "changed while it was compared") {
						t.Errorf("exit status %d, %d moved\n%.3000s", r.status, moved, r.stderr)
					}
					return
				}
				for _, name := range b.names(b.path("srv", "src")) {
					if !exists(b.path("srv", "dst", name)) {
						t.Errorf("%s is in no copy", name)
					}
				}
				if t.Failed() {
					t.Logf("exit status %d, %d moved\n%.3000s", r.status, moved, r.stderr)
				}
			})
		}
	}
}
