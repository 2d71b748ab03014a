package dirfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/base/syncfs"
	"github.com/nfsbox/nfsbox/internal/testkit/loopdisk"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// loopDisk is a disk whose power can be cut.
type loopDisk struct {
	*testing.T
	*loopdisk.Disk
}

func newLoopDisk(t *testing.T, dir string) *loopDisk { return &loopDisk{t, loopdisk.New(t, dir)} }

// open is an FS on the disk, which syncs it as a whole.
func (d *loopDisk) open() *FS {
	f := open(d.T, d.At, Options{})
	if f.whole.sync == nil {
		if syncfs.LinuxSince(5, 17) {
			d.Fatal("an ext4 is not synced as a whole")
		}
		d.Skip("LEFT OUT: this kernel's syncfs may hide failures")
	}
	return f
}

// TestWholeSurvives cuts the power while files are written, synced and renamed. Every file that has
// its name has its bytes, and every name whose directory was synced is there. With a sync that does
// nothing this is not so: the test can see it.
func TestWholeSurvives(t *testing.T) {
	need.Root(t, "it mounts a disk")
	for _, lies := range []bool{false, true} {
		t.Run(fmt.Sprintf("lies=%v", lies), func(t *testing.T) {
			d := newLoopDisk(t, t.TempDir())
			unmount := d.Mount()
			f := d.open()
			syncs := 0
			if honest := f.whole.sync; lies {
				f.whole.sync = func() error { return nil }
			} else {
				f.whole.sync = func() error { syncs++; return honest() }
			}
			safe := d.Fill(f, 16, 200)
			must(t, f.Close())
			unmount()
			defer d.Mount()()
			lost := d.Lost(safe)
			if lost != nil && !lies || lost == nil && lies {
				t.Errorf("of %d names: %v", len(safe), lost)
			}
			if !lies && syncs >= 2*len(safe) {
				t.Errorf("%d syncs for %d files: none was shared", syncs, len(safe))
			}
		})
	}
}

// TestWholeTellsOfFailures has a disk take no more bytes. The copies that it lost are told of it, also
// when somebody else has synced, and has been told, before them.
func TestWholeTellsOfFailures(t *testing.T) {
	need.Root(t, "it mounts a disk")
	dir := t.TempDir()
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"))
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	d := newLoopDisk(t, dir)
	defer d.Mount()()
	f := d.open()
	root, _, err := f.Root(t.Context())
	must(t, err)
	must(t, loopdisk.Put(t.Context(), f, root, "before"))
	var files []vfs.File
	for i := range 4 {
		file, _, err := f.Open(t.Context(), vfs.At{Dir: root, Name: fmt.Sprint(i)},
			&vfs.OpenHow{Access: vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg}})
		must(t, err)
		_, err = vfs.WriteFull(t.Context(), file, bytes.Repeat([]byte{1}, 8<<20), 0, vfs.Unstable, new(vfs.Written))
		must(t, err)
		files = append(files, file)
	}
	other, err := os.Open(d.At)
	must(t, err)
	if err := errors.Join(control(other, unix.Syncfs), other.Close()); err == nil {
		t.Fatal("the disk has taken everything")
	}
	failed := 0
	for _, file := range files {
		if file.Commit(t.Context(), 0, 0, new(vfs.Written)) != nil {
			failed++
		}
		must(t, file.Close(t.Context()))
	}
	if failed < 3 {
		t.Errorf("%d of 4 files were told of it, and no more than one fits", failed)
	}
	must(t, f.Close())
}
