//go:build linux

package mounts

import (
	"bytes"
	"testing"
)

func TestParseMount(t *testing.T) {
	for line, want := range map[string]string{
		"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw": "/mnt2",
		`36 35 98:0 / /with\040blank\011tab\134slash rw - x y z`:         "/with blank\ttab\\slash",
		`36 35 98:0 / /odd\04 rw - x y z`:                                `/odd\04`,
		`36 35 98:0 / /odd\999 rw - x y z`:                               `/odd\999`,
		"36 35 98:0 /":                                                   "",
		"x 35 98:0 / /mnt rw - x y z":                                    "",
		"":                                                               "",
	} {
		id, point, ok := parseMount([]byte(line))
		if string(point) != want || ok != (want != "") || ok && id != 36 {
			t.Errorf("%q: %d, %q, %t", line, id, point, ok)
		}
	}
	for _, tc := range []struct {
		p, dir string
		want   bool
	}{
		{"/a/b", "/a", true}, {"/a", "/a", false}, {"/ab", "/a", false}, {"/a", "/", true}, {"/", "/", false}, {"/b", "/a", false}, {"/a/", "/a", false},
	} {
		if below([]byte(tc.p), []byte(tc.dir)) != tc.want {
			t.Errorf("%s below %s: %t", tc.p, tc.dir, !tc.want)
		}
	}
}

// FuzzMountInfo reads lines of the kernel's table of mounts. A mount point can be
// called anything.
func FuzzMountInfo(f *testing.F) {
	f.Add([]byte(`36 35 98:0 / /with\040blank rw - x y z`))
	f.Fuzz(func(t *testing.T, line []byte) {
		_, point, ok := parseMount(line)
		if len(point) > len(line) || ok && len(bytes.Fields(line)) < 6 {
			t.Errorf("%q: %q", line, point)
		}
	})
}
