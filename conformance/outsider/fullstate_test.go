//go:build linux

package outsider

import (
	"os"
	"strings"
	"testing"
)

// TestFullStateDirectory: the disk with the state directory is full, or so nearly that the record
// does not fit. A copy that was not asked for a record is made, and says that it has none. One that
// was is not begun.
func TestFullStateDirectory(t *testing.T) {
	root(t, "to mount")
	t.Parallel()
	for free := range 4 { // pages
		b := newBoxAlone(t)
		b.write(b.path("src", "f"), "text")
		b.mount("none", b.path(".state"), "tmpfs", "size=64k")
		b.no(os.MkdirAll(b.path(".state", "nfsbox", "unfinished"), 0o700))
		b.no(os.MkdirAll(b.path(".state", "nfsbox", "jobs"), 0o700))
		f, err := os.Create(b.path(".state", "full"))
		b.no(err)
		for size := int64(4096); err == nil; size += 4096 {
			_, err = f.WriteAt(make([]byte, 4096), size-4096)
		}
		info, err := f.Stat()
		b.no(err)
		b.no(f.Truncate(max(info.Size()-int64(free)*4096, 0)))
		b.no(f.Close())
		r := b.must(0, "cp", "-r", b.path("src"), b.path("copy"))
		if free < 2 && !strings.Contains(r.stderr, "note: ") {
			t.Errorf("with %d pages it does not say that it has no record:\n%s", free, r.stderr)
		}
		b.same(b.path("src"), b.path("copy"))
		if free < 2 {
			b.must(1, "cp", "-r", "--job", "j", b.path("src"), b.path("other"))
			if exists(b.path("other")) {
				t.Error("a job without a record was begun")
			}
		}
	}
}
