//go:build linux

package localfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/localfs/handlemap"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestMapOfDirectoryMadeAgain serves a directory that has taken the place of another,
// with what is known of that: a tmpfs after a boot, the layer of a new container.
func TestMapOfDirectoryMadeAgain(t *testing.T) {
	dir, o := t.TempDir(), mapOptions(t)
	top := filepath.Join(dir, "top")
	var told []string
	o.Report = func(err error) { told = append(told, err.Error()) }
	var old []vfs.Handle
	for i := range 3 {
		must[bool](t)(true, os.Mkdir(top, 0o755))
		f := must[*FS](t)(New(top, o))
		for _, x := range old {
			_, err := f.GetAttr(t.Context(), x, vfs.MaskV3)
			wantErr(t, err, vfs.ErrStale)
		}
		old = append(old, root(t, f), mkfile(t, f, root(t, f), "name", fmt.Sprint(i)))
		f = reopenFS(t, f, top, o)
		if got, want := content(t, f, old[len(old)-1]), fmt.Sprint(i); got != want {
			t.Errorf("the new directory's file reads %q, want %q", got, want)
		}
		closeFS(t, f)
		if len(told) != i || i > 0 && !strings.Contains(told[i-1], "another directory") {
			t.Errorf("told after %d directories: %q", i+1, told)
		}
		must[bool](t)(true, os.Rename(top, fmt.Sprintf("%s.%d", top, i))) // its number stays in use
	}
}

// TestMapOfOldVersion begins a new map in the place of one whose handles could come to
// name other objects; what no version has written is refused.
func TestMapOfOldVersion(t *testing.T) {
	for version, want := range map[byte]string{1: "", 3: "version 3"} {
		dir, o := t.TempDir(), mapOptions(t)
		told := 0
		o.Report = func(error) { told++ }
		f := must[*FS](t)(New(dir, o))
		x := mkfile(t, f, root(t, f), "name", "")
		closeFS(t, f)
		file := filepath.Join(o.StateDir, handlemap.FileName)
		b := must[[]byte](t)(os.ReadFile(file))
		b[8] = version // behind the magic
		must[bool](t)(true, os.WriteFile(file, b, 0o600))
		f, err := New(dir, o)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("version %d: %v", version, err)
			}
			continue
		}
		if err != nil || told != 1 {
			t.Fatalf("version %d: %v, told %d times", version, err, told)
		}
		_, err = f.GetAttr(t.Context(), x, vfs.MaskV3)
		wantErr(t, err, vfs.ErrStale)
		closeFS(t, f)
	}
}
