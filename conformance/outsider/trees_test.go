//go:build linux

package outsider

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestTreesStaySmall: the verbs that look through trees take less than 256 MiB, whether a tree has many directories or
// one of them many names, on this host and on a server. NFSBOX_SOAK=1 has a million of each.
func TestTreesStaySmall(t *testing.T) {
	b := newBox(t)
	dirs, files, most := 2_000, 50_000, 128<<10
	if os.Getenv("NFSBOX_SOAK") != "" {
		dirs, files, most = 20_000, 1_000_000, 256<<10
	}
	for i := range files {
		dir := b.path("srv", "dirs", fmt.Sprint(i%dirs))
		if i < dirs {
			b.no(os.MkdirAll(dir, 0o755))
		}
		for _, path := range []string{dir + fmt.Sprint("/f", i), b.path("srv") + fmt.Sprint("/f", i)} {
			b.no(syscall.Mknod(path, syscall.S_IFREG|0o644, 0))
		}
	}
	s := b.serve(b.path("srv"))
	names := 2*files + dirs + 2
	for _, at := range []string{b.path("srv"), s.url} {
		for verb, lines := range map[string]int{"find --type=f": 2 * files, "du": dirs + 2, "scan -q --json": 0} {
			cmd := b.command(append(strings.Fields(verb), at)...)
			out, err := cmd.Output()
			b.no(err)
			if n := strings.Count(string(out), "\n"); lines > 0 && n != lines {
				t.Errorf("%s %s: %d lines, want %d", verb, at, n, lines)
			}
			if lines == 0 && !strings.Contains(string(out), fmt.Sprintf(`"type":"summary","entries":%d,"files":%d,"dirs":%d,`, names, 2*files, dirs+2)) {
				t.Errorf("%s %s: no %d names:\n%s", verb, at, names, out[max(0, len(out)-500):])
			}
			var own syscall.Rusage // a child's peak begins with ours: until it executes the command, it has our memory
			b.no(syscall.Getrusage(syscall.RUSAGE_SELF, &own))
			if peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; int64(peak) > max(int64(most), int64(own.Maxrss)) {
				t.Errorf("%s %s: %d KiB of memory", verb, at, peak)
			}
		}
	}
}

// TestFoundIsAPlace: what find prints of a server, whatever names it has, another command takes.
func TestFoundIsAPlace(t *testing.T) {
	b := newBox(t)
	odd := []string{"a b", "q?x=1", "50%25", "new\nline", "*", "[x]", "#", "ü", "\xff", "\x1b[31m", "-n", "semi;colon&amp"}
	for _, name := range odd {
		b.write(b.path("srv", "d", name), "in "+name)
	}
	s := b.serve(b.path("srv"))
	found := strings.Split(strings.TrimSuffix(b.must(0, "find", s.url, "-type", "f", "-print0").stdout, "\x00"), "\x00")
	if len(found) != len(odd) {
		t.Fatalf("%d were found, want %d: %q", len(found), len(odd), found)
	}
	all := b.must(0, append([]string{"cat"}, found...)...).stdout
	for _, name := range odd {
		if !strings.Contains(all, "in "+name) {
			t.Errorf("%q was not found", name)
		}
	}
}

// TestScanKeepsReports: a report that is there stays until a whole one takes its place, and nothing else is left.
func TestScanKeepsReports(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "f"), "text")
	page := b.path("out", "page.html")
	b.write(page, "yesterday's")
	for _, args := range [][]string{{"nfs://127.0.0.1:1/e"}, {b.path("none")}, {"--top", "0", b.path("srv")}} {
		if status := b.run(append([]string{"scan", "--report", page}, args...)...).status; status == 0 || b.text(page) != "yesterday's" {
			t.Errorf("%q: status %d, and the page is %q", args, status, b.text(page))
		}
	}
	b.must(0, "scan", "-q", "--report", page, b.path("srv"))
	if !strings.Contains(b.text(page), "</html>") || len(b.names(b.path("out"))) != 1 {
		t.Errorf("%q beside the page", b.names(b.path("out")))
	}
}
