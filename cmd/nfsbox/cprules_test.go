package main

import (
	"bytes"
	"crypto/rand"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// rulesTree makes what the sources and destinations of TestCpRules are.
func rulesTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"A/sub", "B", "dir", "blocked/f1", "filled", "same/A"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"f1", "f2", "exist", "A/a", "A/sub/deep", "B/b", "B/f1", "filled/A", "same/A/a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"nowhere": "not/there", "linkdir": "dir"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// inTree is what lies below dir: each path with its type and contents.
func inTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, what := strings.TrimPrefix(path, dir), d.Type().String()
		switch {
		case d.Type().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += string(b)
		case d.Type()&fs.ModeSymlink != 0:
			if what, err = os.Readlink(path); err != nil {
				return err
			}
		}
		all[name] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// command runs the command in this process.
func command(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(&env{ctx: t.Context(), stdout: &out, stderr: &errs, rand: func(p []byte) { _, _ = rand.Read(p) }}, args)
	return status, out.String(), errs.String()
}

// TestCpRules holds cp's understanding of its sources and DEST beside that of GNU cp,
// where that is installed: what is refused, and what the tree is afterwards.
func TestCpRules(t *testing.T) {
	need.Time(t, "every form of cp's arguments, beside GNU cp")
	if runtime.GOOS == "windows" {
		t.Skip("no cp here")
	}
	gnu := false
	if out, err := exec.Command("/bin/cp", "--version").Output(); err == nil {
		gnu = bytes.Contains(out, []byte("GNU coreutils"))
	}
	if !gnu {
		t.Log("no GNU cp here: only our own part is looked at")
	}
	for _, tt := range []struct {
		args    string
		refused bool   // something of it, at least
		changed string // the paths that are new or other afterwards
	}{
		{"f1 new", false, "/new"},
		{"f1 f2", false, "/f2"},
		{"f1 dir", false, "/dir/f1"},
		{"f1 f2 dir", false, "/dir/f1 /dir/f2"},
		{"f1 linkdir", false, "/dir/f1"},
		{"f1 dir/.", false, "/dir/f1"},
		{"-r A new", false, "/new /new/a /new/sub /new/sub/deep"},
		{"-r A new/", false, "/new /new/a /new/sub /new/sub/deep"},
		{"-r A dir", false, "/dir/A /dir/A/a /dir/A/sub /dir/A/sub/deep"},
		{"-r A linkdir/", false, "/dir/A /dir/A/a /dir/A/sub /dir/A/sub/deep"},
		{"-r A/. dir", false, "/dir/a /dir/sub /dir/sub/deep"},
		{"-r A/. new", false, "/new /new/a /new/sub /new/sub/deep"},
		{"-r f1 new", false, "/new"},
		{"-r f1 B dir", false, "/dir/B /dir/B/b /dir/B/f1 /dir/f1"},
		{"f1 f1 dir", false, "/dir/f1"},

		{"f1 f2 exist", true, ""},
		{"f1 f2 new", true, ""},
		{"f1 f2 new/", true, ""},
		{"f1 f2", false, "/f2"},
		{"-r A B new", true, ""},
		{"-r A B exist", true, ""},
		{"f1 new/", true, ""},
		{"f1 new/.", true, ""},
		{"f1 f2/", true, ""},
		{"f1/ dir", true, ""},
		{"f1 new/new", true, ""},
		{"f1 f1", true, ""},
		{"f1 .", true, ""},
		{"f1 nowhere", true, ""},
		{"-r A nowhere", true, ""},
		{"-r A f1", true, ""},
		{"-r A filled", true, ""},
		{"f1 blocked", true, ""},
		{"A dir", true, ""},
		{"A f1 dir", true, "/dir/f1"},
		{"new f1 dir", true, "/dir/f1"},
		{"f1 B/f1 dir", true, "/dir/f1"},
		{"-r A .", true, ""},
	} {
		t.Run(tt.args, func(t *testing.T) {
			dir := rulesTree(t)
			before := inTree(t, dir)
			status, _, stderr := command(t, append([]string{"cp", "--no-progress"}, below(dir, tt.args)...)...)
			if (status != exitOK) != tt.refused || tt.refused && stderr == "" {
				t.Errorf("status %d: %s", status, stderr)
			}
			after := inTree(t, dir)
			if got := changes(before, after); got != tt.changed {
				t.Errorf("changed: %q, want %q", got, tt.changed)
			}
			if !gnu {
				return
			}
			other := rulesTree(t)
			cp := exec.Command("/bin/cp", below(other, tt.args)...)
			cp.Stderr = io.Discard
			if err := cp.Run(); (err != nil) != tt.refused {
				t.Errorf("GNU cp: %v", err)
			}
			if theirs := inTree(t, other); !maps.Equal(theirs, after) {
				t.Errorf("GNU cp makes another tree: %s", changes(theirs, after))
			}
		})
	}
}

// TestCpStricter is what we refuse and GNU cp does not, or not without a trace.
func TestCpStricter(t *testing.T) {
	for _, args := range []string{"-r A A/new", "-r A A/sub/new", "-r A A/sub", "-r A A"} {
		dir := rulesTree(t)
		before := inTree(t, dir)
		if status, _, stderr := command(t, append([]string{"cp"}, below(dir, args)...)...); status != exitUsage || !strings.Contains(stderr, "lies within") {
			t.Errorf("%s: status %d: %s", args, status, stderr)
		}
		if changed := changes(before, inTree(t, dir)); changed != "" {
			t.Errorf("%s has left %s", args, changed)
		}
	}
	dir := rulesTree(t)
	if status, _, _ := command(t, append([]string{"cp"}, below(dir, "-r A same/A dir")...)...); status != exitUsage {
		t.Errorf("a second tree of the same name: status %d", status)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "dir/A/a")); err != nil || string(b) != "A/a" {
		t.Errorf("the first one's file holds %q, %v", b, err)
	}
}

// below are arguments, those that are paths below dir.
func below(dir, args string) []string {
	all := strings.Fields(args)
	for i, a := range all {
		if !strings.HasPrefix(a, "-") {
			all[i] = dir + "/" + a
		}
	}
	return all
}

// changes are the paths that two trees do not have in common.
func changes(a, b map[string]string) string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	var differ []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if x, ok := a[path]; !ok || x != b[path] || !has(b, path) {
			differ = append(differ, path)
		}
	}
	return strings.Join(differ, " ")
}

func has(m map[string]string, path string) bool { _, ok := m[path]; return ok }
