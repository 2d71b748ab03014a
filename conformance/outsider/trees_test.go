//go:build linux

package outsider

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
)

// manyNames are two trees of the same names and times: many directories, and many files in one.
type manyNames struct {
	*box
	dirs, files int // files in the directories together, and as many in one
	most        int // KiB of memory of a command
}

// names are how many entries a tree has, its root included.
func (m *manyNames) names() int { return 2*m.files + m.dirs + 2 }

// make makes a tree of empty files.
func (m *manyNames) make(top string) {
	m.Helper()
	when := []syscall.Timespec{{Sec: 1e9}, {Sec: 1e9}}
	for i := range m.files {
		dir := filepath.Join(top, "dirs", fmt.Sprint(i%m.dirs))
		if i < m.dirs {
			m.no(os.MkdirAll(dir, 0o755))
		}
		for _, path := range []string{dir + fmt.Sprint("/f", i), top + fmt.Sprint("/f", i)} {
			m.no(syscall.Mknod(path, syscall.S_IFREG|0o644, 0))
			m.no(syscall.UtimesNano(path, when))
		}
	}
	for i := range m.dirs {
		m.no(syscall.UtimesNano(filepath.Join(top, "dirs", fmt.Sprint(i)), when))
	}
	m.no(syscall.UtimesNano(filepath.Join(top, "dirs"), when))
	m.no(syscall.UtimesNano(top, when))
}

// small runs the command, which has to take no more memory than is allowed. It returns the end of what is printed,
// and how many lines that were.
func (m *manyNames) small(line string, places ...string) (end string, lines int) {
	m.Helper()
	cmd := m.command(append(strings.Fields(line), places...)...)
	out, errs := new(tail), new(tail)
	cmd.Stdout, cmd.Stderr = out, errs
	m.forgetPeak()
	began := time.Now()
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1 || !strings.HasPrefix(line, "grep")) { // which has found no line
		m.Fatalf("%s %s: %v\n%s", line, places, err, errs.text)
	}
	peak := int(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	m.Logf("%-26s %7d KiB %10v  %s", line, peak, time.Since(began).Round(time.Millisecond), places)
	if peak > m.most {
		m.Errorf("%s %s: %d KiB of memory", line, places, peak)
	}
	return string(out.text), out.lines
}

// forgetPeak gives back what memory this process does not use, and has the kernel forget its peak: that of a child
// begins with it, as it has our memory until it executes the command (proc_pid_clear_refs(5)).
func (m *manyNames) forgetPeak() {
	m.Helper()
	debug.FreeOSMemory()
	m.no(os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
}

// tail counts the lines that are written, and keeps the last bytes.
type tail struct {
	text  []byte
	lines int
}

func (t *tail) Write(p []byte) (int, error) {
	const kept = 2000
	t.lines += bytes.Count(p, []byte("\n"))
	t.text = append(t.text, p...)
	t.text = append(t.text[:0], t.text[max(0, len(t.text)-kept):]...)
	return len(p), nil
}

// TestTreesStaySmall: the verbs that look through trees take less than 256 MiB, whether a tree has many directories or
// one of them many names, on this host and on a server. NFSBOX_SOAK=1 has a million of each, and copies and removes them,
// too; without it less is allowed. Two directories of a million that are the same are listed 16 times each at most.
func TestTreesStaySmall(t *testing.T) {
	m := &manyNames{box: newBoxAlone(t), most: 96 << 10}
	m.files = m.soakFiles(8_000, 1_000_000)
	m.dirs = m.files / 50
	if m.long = soak(); m.long {
		m.most = 256 << 10
	}
	src, dst := m.path("src", "tree"), m.path("dst", "tree")
	m.make(src)
	m.no(os.Mkdir(m.path("dst"), 0o755))
	from, to := m.serve(m.path("src"), "--metrics=127.0.0.1:0"), m.serve(m.path("dst"), "--metrics=127.0.0.1:0")
	for _, at := range []string{src, from.url + "tree"} {
		for verb, lines := range map[string]int{
			"find --type=f": 2 * m.files, "du": m.dirs + 2, "ls -R": 2*m.files + m.dirs + 1, "grep -r -L x --include */ --include f*99 --exclude *": m.files / 100 * 2,
		} {
			if _, n := m.small(verb, at); n != lines {
				t.Errorf("%s %s: %d lines, want %d", verb, at, n, lines)
			}
		}
		if out, _ := m.small("scan -q --json", at); !strings.Contains(out, fmt.Sprintf(`"type":"summary","entries":%d,"files":%d,"dirs":%d,`, m.names(), 2*m.files, m.dirs+2)) {
			t.Errorf("scan %s: no %d names:\n%s", at, m.names(), out)
		}
	}
	there := to.url + "tree"
	if m.long {
		m.small("cp -r -q", from.url+"tree", there)
	} else {
		m.make(dst)
	}
	page := m.listed(from, func() { m.small("find --max-depth=1 --name=none", from.url+"tree") })["READDIRPLUS"]
	for _, verb := range []string{"sync -q --no-progress", "verify -q --no-progress"} {
		was := to.calls()
		left := m.listed(from, func() { m.small(verb, from.url+"tree", there) })
		right := since(was, to.calls())
		t.Logf("%s: a listing of %d names is %d pages; at the source %v, at the destination %v", verb, m.files, page, left, right)
		for _, n := range []map[string]int{left, right} {
			if pages := n["READDIRPLUS"] + n["READDIR"]; pages > 16*page+2*m.dirs || n["LOOKUP"]+n["GETATTR"] > m.dirs+m.dirs/10+50 {
				t.Errorf("%s: too many calls: %v", verb, n)
			}
		}
	}
	if m.long {
		m.small("rm -r -q", there)
		if exists(dst) {
			t.Errorf("%s is still there", dst)
		}
	}
}

// listed are the calls that s has got during f.
func (m *manyNames) listed(s *server, f func()) map[string]int {
	m.Helper()
	was := s.calls()
	f()
	return since(was, s.calls())
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
