package paths

import "testing"

// TestParseMounts reads lines as proc_pid_mountinfo(5) has them, and no others.
func TestParseMounts(t *testing.T) {
	m := parseMounts([]byte(`36 35 98:0 / / rw - ext4 /dev/root rw
41 36 98:0 /a\040b\134\011 /mnt/x\012y rw,noatime master:1 shared:2 - ext3 /dev/root rw
50 36 0:50 / /n rw - nfs4 h:/a rw
51 36 0:50 / /o rw - nfs4 h:/b rw
60 36 98:0 /
x 36 98:0 / /p rw - ext4 d rw
61 36 98:0 / /q rw
62 36 98:0 \04 /r\9zz rw - ext4 d rw`))
	if len(m) != 5 {
		t.Errorf("%d lines are read: %v", len(m), m)
	}
	if want := (mounted{41, 36, "98:0", "/a b\\\t", "/mnt/x\ny"}); m[41] != want {
		t.Errorf("%+v, want %+v", m[41], want)
	}
	if m[62].root != `\04` || m[62].point != `/r\9zz` {
		t.Errorf("what is no escape: %+v", m[62])
	}
	for _, x := range []struct {
		mount uint64
		dir   string
		want  spot
		ok    bool
	}{
		{36, "/", spot{"98:0", "/"}, true},
		{36, "/c/d", spot{"98:0", "/c/d"}, true},
		{41, "/mnt/x\ny", spot{"98:0", "/a b\\\t"}, true},
		{41, "/mnt/x\ny/z", spot{"98:0", "/a b\\\t/z"}, true},
		{41, "/mnt/x\nyz", spot{}, false},
		{50, "/n/f", spot{"0:50.50", "/f"}, true},
		{51, "/o/f", spot{"0:50.51", "/f"}, true},
		{99, "/", spot{}, false},
	} {
		if got, ok := m.spot(x.mount, x.dir); ok != x.ok || ok && got != x.want {
			t.Errorf("mount %d, %q: %v, %v; want %v", x.mount, x.dir, got, ok, x.want)
		}
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add([]byte(`36 35 98:0 /a\040b / rw shared:2 - ext4 /dev/root rw`))
	f.Fuzz(func(t *testing.T, text []byte) {
		for id, m := range parseMounts(text) {
			if m.id != id || len(m.root)+len(m.point)+len(m.volume) > len(text)+1 {
				t.Errorf("%d: %+v", id, m)
			}
		}
	})
}

// TestNestedByPaths goes by paths and devices where the mounts are unknown.
func TestNestedByPaths(t *testing.T) {
	for _, x := range []struct {
		dir     string
		dev     uint64
		crosses bool
		want    string
	}{
		{"/srv/a/b", 1, false, "/out"}, {"/srv/a/b", 2, false, ""}, {"/srv/a/b", 2, true, "/out"}, {"/srvs", 1, false, ""}, {"/srv", 1, false, "/out"},
	} {
		in := Tree{Name: "/in", Dir: x.dir, At: Place{dev: x.dev}}
		n := nest([]Tree{{Name: "/out", Dir: "/srv", At: Place{dev: 1}, Crosses: x.crosses}, in}, nil)
		got := ""
		for out := range n.Above(&in) {
			got = out.Name
		}
		if got != x.want {
			t.Errorf("%+v: within %q", x, got)
		}
	}
}
