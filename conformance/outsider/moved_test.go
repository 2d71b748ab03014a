//go:build linux

package outsider

import (
	"fmt"
	"os"
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
