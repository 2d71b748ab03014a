//go:build linux

package fusefs

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/memfs"
)

// TestUnheard: bytes that a program has written, and that do not fit, are told of when the mount ends, if the program
// was killed, or ended without closing its file. One that has heard of it is not told of again.
func TestUnheard(t *testing.T) {
	need.Fuse(t)
	for _, one := range []struct {
		name, command string
		heard         bool
	}{
		{"killed", "exec 3>f && printf %0100000d 1 >&3 && kill -9 $$", false},
		{"ended", "exec 3>f && printf %0100000d 1 >&3 && exit 0", false},
		{"heard", "printf %0100000d 1 | dd of=f bs=100000 iflag=fullblock conv=fsync && exit 1; exit 0", true},
	} {
		t.Run(one.name, func(t *testing.T) {
			url, stop := listen(t, export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o777, MaxBytes: 10_000})})
			t.Cleanup(stop)
			m, drained := mountClient(t, dial(t, url), Options{})
			err := exec.Command("/bin/sh", "-c", "cd '"+m.dir+"' && "+one.command).Run()
			if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended || one.heard && err != nil {
				t.Fatal(err)
			}
			expect.Soon(t, "unmounted", func() bool { return m.Unmount(false) == nil })
			u := <-drained
			if told := len(u.Errors) > 0; told == one.heard {
				t.Errorf("reported: %+v", u)
			}
			for _, err := range u.Errors {
				if want := filepath.Join(m.dir, "f") + ": no space left on the server"; !errors.Is(err, vfs.ErrNoSpace) || err.Error() != want {
					t.Errorf("reported: %v", err)
				}
			}
		})
	}
}
