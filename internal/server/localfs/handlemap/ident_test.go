//go:build linux

package handlemap

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
)

// TestIdentWithoutHandle tells an object by its birth that has no handle, where others
// have one.
func TestIdentWithoutHandle(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	var st linux.Stat
	if err := st.Of(int(r.Fd())); err != nil {
		t.Fatal(err)
	}
	n := Identifier{how: byLayers} // which before Linux 6.5 pipes have not
	if id, err := n.Ident(int(r.Fd()), &linux.EmptyName[0], unix.AT_EMPTY_PATH, &st); err != nil || id != st.Ident() {
		t.Errorf("%+v, %v; want %+v", id, err, st.Ident())
	}
}
