//go:build linux

package outsider

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"
)

// terminal makes a terminal of so many columns (pty(7)): what is written to tty comes out of
// screen.
func (b *box) terminal(columns uint16) (screen, tty *os.File) {
	b.Helper()
	open := func(name string) *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
		if err != nil {
			b.Skipf("NOT TESTED: no terminal can be had: %v", err)
		}
		b.Cleanup(func() { _ = f.Close() }) // the test may have closed it
		return f
	}
	screen = open("/dev/ptmx")
	var number, unlock int32
	b.ioctl(screen, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	b.ioctl(screen, syscall.TIOCGPTN, unsafe.Pointer(&number))
	tty = open(fmt.Sprintf("/dev/pts/%d", number))
	b.columns(tty, columns)
	return screen, tty
}

// columns sets a terminal's width.
func (b *box) columns(tty *os.File, columns uint16) {
	b.Helper()
	size := [4]uint16{24, columns} // struct winsize
	b.ioctl(tty, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}

func (b *box) ioctl(f *os.File, request uintptr, arg unsafe.Pointer) {
	b.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(arg)); errno != 0 {
		b.Fatal(errno)
	}
}

// frames are the lines that were drawn one over the other.
func frames(drawn string) []string {
	list := strings.Split(drawn, "\r\x1b[K")[1:]
	return list[:max(len(list)-1, 0)] // behind the last stands what stays
}

// TestProgressOnTerminal: the line of a copy fits the terminal, narrow or wide, and shows what
// there is room for. It follows a terminal that gets another width.
func TestProgressOnTerminal(t *testing.T) {
	for _, columns := range []uint16{20, 50, 80, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			b := newBox(t)
			const name = "a-file-with-a-name-that-is-rather-long-漢字-"
			for i := range 20 {
				b.write(b.path("srv", fmt.Sprint(name, i)), string(pattern(10_000, byte(i))))
			}
			hold := make(chan struct{})
			goOn := sync.OnceFunc(func() { close(hold) })
			defer goOn()
			p := b.proxy(b.serve(b.path("srv")), func(p *proxy) {
				p.back = b.whenPassed(30_000, func() { <-hold })
			})
			screen, tty := b.terminal(columns)
			cmd := b.command("cp", "-r", "--parallel=1", p.url(), b.path("copy"))
			cmd.Env = append(cmd.Env, "TERM=xterm")
			cmd.Stderr = tty
			b.no(cmd.Start())
			drawn, read := make(chan string, 1), new(log)
			go func() {
				piece := make([]byte, 4096)
				for {
					n, err := screen.Read(piece)
					_, _ = read.Write(piece[:n])
					if err != nil || strings.Contains(read.String(), "THE END") {
						drawn <- read.String()
						return
					}
				}
			}()
			b.until("two lines are drawn", func() bool { return len(frames(read.String())) > 2 })
			b.columns(tty, columns/2)
			narrow := 0
			b.until("a line is drawn that fits the narrower terminal", func() bool {
				list := frames(read.String())
				narrow = len(list) - 1
				return narrow > 0 && utf8.RuneCountInString(list[narrow]) < int(columns/2)
			})
			goOn()
			err := cmd.Wait()
			_, werr := tty.WriteString("THE END")
			b.no(werr)
			all := <-drawn
			if err != nil || !strings.Contains(unfolded(all), "copied: 20 files") {
				t.Errorf("%v\n%q", err, all)
			}
			for i, f := range frames(all) {
				if strings.Contains(f, "\n") {
					continue // a message, above the line
				}
				if n := utf8.RuneCountInString(f); n >= int(columns) || i > narrow && n >= int(columns/2) || f == "" {
					t.Errorf("line %d, of %d wide ones, has %d columns: %q", i, narrow, n, f)
				}
			}
			if columns == 200 && !strings.Contains(all, "long-漢字-") { // half as many columns have its end
				t.Errorf("no name is shown: %q", all)
			}
		})
	}
}

// TestProgressFlags: how much is printed is chosen by flags, and where a terminal is none it is
// plain lines.
func TestProgressFlags(t *testing.T) {
	b := newBox(t)
	for i := range 3 {
		b.write(b.path("src", fmt.Sprint("f", i)), "text")
	}
	b.no(os.Chmod(b.path("src"), 0o755))
	for i, c := range []struct {
		flags     []string
		want, not []string
	}{
		{nil, []string{"4 of 4 items", "copied: 3 files, 1 directory\n"}, []string{"\x1b", "f1"}},
		{[]string{"--progress=lines"}, []string{"4 of 4 items"}, []string{"\x1b"}},
		{[]string{"--progress=none"}, []string{"4 of 4 items", "copied: "}, []string{"\x1b"}},
		{[]string{"--no-progress"}, []string{"4 of 4 items", "copied: "}, []string{"\x1b"}},
		{[]string{"-v"}, []string{"done: f0\n", "done: f1\n", "done: f2\n"}, nil},
		{[]string{"-q"}, nil, []string{"items", "copied", "\x1b"}},
		{[]string{"--verify"}, []string{"3 verified\n"}, nil},
	} {
		dst := b.path(fmt.Sprint("dst", i))
		r := b.must(0, append([]string{"cp", "-r", b.path("src"), dst}, c.flags...)...)
		for _, want := range c.want {
			if !strings.Contains(r.stderr, want) {
				t.Errorf("%q: no %q in\n%s", c.flags, want, r.stderr)
			}
		}
		for _, not := range c.not {
			if strings.Contains(r.stderr, not) {
				t.Errorf("%q: %q in\n%s", c.flags, not, r.stderr)
			}
		}
		if c.flags != nil && c.flags[0] == "-q" && r.stdout+r.stderr != "" {
			t.Errorf("-q prints %q", r.stdout+r.stderr)
		}
	}
	b.must(1, "cp", "-r", "--progress=much", b.path("src"), b.path("none"))
}

// TestVerdicts: cp and verify say in words what they have come to, and what to do next.
func TestVerdicts(t *testing.T) {
	b := newBox(t)
	b.write(b.path("src", "a"), "text")
	b.write(b.path("src", "sub", "b"), "text")
	b.no(os.MkdirAll(b.path("dst", "src", "a"), 0o755)) // in the way
	args := []string{"cp", "-r", b.path("src"), b.path("dst")}
	r := b.must(2, args...)
	for _, want := range []string{"copied: 1 file, 2 directories\n", "failed: 1 item\n", "to try again what has failed: " + b.bin + " " + strings.Join(args, " ") + "\n"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no %q in\n%s", want, r.stderr)
		}
	}
	b.no(os.Remove(b.path("dst", "src", "a")))
	if r := b.must(0, args...); !strings.Contains(r.stderr, "copied: 1 file\n1 skipped, as an earlier run had copied it, 2 unchanged\n") {
		t.Errorf("%s", r.stderr)
	}
	if r := b.must(0, "verify", b.path("src"), b.path("dst", "src")); !strings.Contains(r.stderr, "the same: 2 files, 2 directories\n") {
		t.Errorf("%s", r.stderr)
	}
	b.no(os.WriteFile(b.path("dst", "src", "more"), nil, 0o644))
	b.no(os.Remove(b.path("dst", "src", "a")))
	b.no(os.Chtimes(b.path("dst", "src"), time.Time{}, b.mtime(b.path("src"))))
	if r := b.must(3, "verify", b.path("src"), b.path("dst", "src")); !strings.Contains(r.stderr, "different: 2 differences, 1 of them missing in DEST, 1 of them only in DEST\n") {
		t.Errorf("%s", r.stderr)
	}
}
