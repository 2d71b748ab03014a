package chmod

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestParse: a mode means what it means to GNU chmod, which is asked where it is installed, with
// a umask of 0.
func TestParse(t *testing.T) {
	gnu := false
	if runtime.GOOS == "linux" {
		out, err := exec.Command("chmod", "--version").Output()
		gnu = err == nil && strings.Contains(string(out), "GNU coreutils")
	}
	for _, c := range []struct {
		mode      string
		before    uint32
		dir, file uint32
	}{
		{"755", 0o2700, 0o2755, 0o755}, {"0755", 0o6700, 0o6755, 0o755}, {"00755", 0o6700, 0o755, 0o755}, {"1755", 0o2700, 0o3755, 0o1755},
		{"2755", 0o700, 0o2755, 0o2755}, {"0", 0o4777, 0o4000, 0}, {"00000", 0o4777, 0, 0},
		{"g=u", 0o2740, 0o2770, 0o770}, {"g=u-w", 0o740, 0o750, 0o750}, {"o+g", 0o750, 0o755, 0o755}, {"go-u", 0o777, 0o700, 0o700}, {"a=o", 0o754, 0o444, 0o444},
		{"u=o,g=u", 0o070, 0, 0}, {"o=u", 0o4700, 0o4707, 0o4707},
		{"u+rw,go=", 0o2077, 0o2600, 0o600}, {"+x", 0o644, 0o755, 0o755}, {"=rwx", 0o6000, 0o6777, 0o777}, {"=", 0o7777, 0o6000, 0},
		{"g-s", 0o2755, 0o755, 0o755}, {"a+X", 0o644, 0o755, 0o644}, {"u=rX,g+X", 0o610, 0o510, 0o510}, {"u=rw+x-r", 0o77, 0o377, 0o377},
		{"ug+s,o+t", 0o755, 0o7755, 0o7755}, {"u=s", 0o700, 0o4000, 0o4000}, {"go=u,u=", 0o640, 0o066, 0o066},
	} {
		change, err := Parse(c.mode)
		if err != nil {
			t.Errorf("%s: %v", c.mode, err)
			continue
		}
		for kind, want := range map[vfs.Type]uint32{vfs.TypeDir: c.dir, vfs.TypeReg: c.file} {
			if got := change(&vfs.Attr{Type: kind, Mode: c.before}); got != want {
				t.Errorf("%s makes %04o of %04o of a %v, want %04o", c.mode, got, c.before, kind, want)
			}
			if gnu {
				if got := gnuMode(t, c.mode, c.before, kind == vfs.TypeDir); got != want {
					t.Errorf("%s: chmod(1) makes %04o of %04o of a %v, and not %04o", c.mode, got, c.before, kind, want)
				}
			}
		}
	}
	for _, bad := range []string{"", "9", "77777", "u", "+", "u+", "u-,g+r", "g=uw", "g=ru", "z+r", "u+z", "u=r,", "rw", "+r-"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%q is taken for a mode", bad)
		}
	}
}

// gnuMode has chmod(1) change an object.
func gnuMode(t *testing.T, mode string, before uint32, isDir bool) uint32 {
	t.Helper()
	name := filepath.Join(t.TempDir(), "x")
	err := os.WriteFile(name, nil, 0o600)
	if isDir {
		if err = os.Remove(name); err == nil {
			err = os.Mkdir(name, 0o700)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var now uint32
	script := fmt.Sprintf(`umask 0; chmod a-st "$0"; chmod %05o "$0"; chmod -- "$1" "$0"; stat -c %%a "$0"; chmod 700 "$0"`, before)
	out, err := exec.Command("sh", "-c", script, name, mode).CombinedOutput()
	if _, serr := fmt.Sscanf(string(out), "%o", &now); err != nil || serr != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return now
}
