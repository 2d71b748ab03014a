//go:build linux

package outsider

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// widths are those of the terminals on which every screen is looked at, in columns.
var widths = []uint16{20, 50, 80, 200}

// TestScreens looks at what each command shows on terminals of several widths. No line is wider than the
// terminal but one word, a row of names, or a command to be typed, which a terminal wraps so that it can be copied
// whole. No name is cut in the middle of a character, and no line of progress stays or wraps.
func TestScreens(t *testing.T) {
	b := newBox(t)
	const wide, marked = "漢字仮名交じり文の長い名前", "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301"
	for i := range 6 {
		b.write(b.path("srv", fmt.Sprint(wide, i)), string(pattern(30_000, byte(i))))
		b.write(b.path("srv", fmt.Sprint(marked, i)), "text")
		b.write(b.path("srv", fmt.Sprint("plain name with blanks ", i)), "text")
	}
	b.no(os.Symlink(wide+"0", b.path("srv", "link")))
	b.no(os.Chmod(b.path("srv"), 0o755))
	b.must(0, "cp", "-r", b.path("srv")+"/.", b.path("same"))
	b.must(0, "cp", "-r", b.path("srv")+"/.", b.path("other"))
	b.write(b.path("other", "plain name with blanks 0"), "another text")
	b.no(os.Mkdir(b.path("in the way"), 0o755))
	b.no(os.MkdirAll(b.path("in the way", "srv", "plain name with blanks 0"), 0o755))

	s := b.serve(b.path("srv"), "--http=127.0.0.1:0")
	var view []string
	b.until("the log has the address of the live view", func() bool {
		view = regexp.MustCompile(`msg=http url=(\S+)\n`).FindStringSubmatch(s.log.String())
		return view != nil
	})
	b.must(0, "cat", s.url+wide+"0", s.url+marked+"1")
	shared := b.path("shared")
	b.no(os.Mkdir(shared, 0o700))
	b.serveWith(shared, "127.0.0.1:0", b.path("srv"), "--localio=off")
	b.serveWith(shared, "127.0.0.1:0", b.path("same"), "--localio=off")

	good, wrong := b.path("good.toml"), b.path("wrong.toml")
	b.write(good, fmt.Sprintf("[[export]]\npath = \"/\"\ndir = %q\n", b.path("srv")))
	b.write(wrong, "bogus = 1\nslow = 5\n[[export]]\npath = \"/a\"\ndir = \"/none/of/this/name/is/there\"\nsquash = \"nobody\"\nclients = [\"10.0.0.1\"]\n")
	b.no(os.MkdirAll(b.path("empty dir"), 0o755))
	noJobs := b.path("empty dir")

	const rows = `.` // of names, all
	for _, c := range []struct {
		name   string
		args   []string // "DEST" is a path that is not there
		status int
		want   string // something that is shown; "" is nothing special
		free   string // lines that may be wider
	}{
		{"ls", []string{"ls", s.url}, 0, wide + "0", "^plain name"},
		{"ls -l", []string{"ls", "-l", s.url}, 0, wide + "0", rows},
		{"stat", []string{"stat", s.url + wide + "0"}, 0, "Handle:", rows},
		{"stat fails", []string{"stat", s.url + "nothing of this name is there"}, 2, "no such file", ""},
		{"exports", []string{"exports", s.url}, 0, "(everyone)", rows},
		{"cp", []string{"cp", "-r", s.url, "DEST"}, 0, "copied: 18 files", ""},
		{"cp fails", []string{"cp", "-r", b.path("srv"), b.path("in the way")}, 2, "failed: 1", ""},
		{"verify", []string{"verify", s.url, b.path("same")}, 0, "the same: ", ""},
		{"verify differs", []string{"verify", s.url, b.path("other")}, 3, "different: ", ""},
		{"demo", []string{"demo", b.path("srv")}, 0, "no differences", ""},
		{"doctor", []string{"doctor", "--read", s.url}, 0, "getattr", ""},
		{"doctor, wrong path", []string{"doctor", s.url + "nothing/of/this/name"}, 4, "FAILED", ""},
		{"doctor, wrong port", []string{"doctor", "nfs://" + b.closedPort() + "/export"}, 4, "nothing listens", ""},
		{"doctor, silent port", []string{"doctor", "nfs://" + b.silentPort() + "/export"}, 4, "accepts connections", ""},
		{"ctl status of two", []string{"ctl", "status", "--state-dir", shared}, 4, "2 run with", ""},
		{"ctl status", []string{"ctl", "status", "--state-dir", s.state}, 0, "in service", ""},
		{"ctl clients", []string{"ctl", "clients", "--state-dir", s.state}, 0, "CLIENT", rows},
		{"top", []string{"top", view[1]}, 0, "ops/s", ""},
		{"top --once", []string{"top", "--once", view[1]}, 0, "ops/s", ""},
		{"bench", []string{"bench", "null", "--duration=1200ms", "--warmup=0", s.url}, 0, "latency", ""},
		{"bench fails", []string{"bench", "read", "nfs://" + b.closedPort() + "/export"}, 4, "nothing listens", ""},
		{"exports fails", []string{"exports", "nfs://" + b.closedPort() + "/"}, 4, "cannot be reached", ""},
		{"cat fails", []string{"cat", s.url + wide + "0/below/it"}, 2, "not a directory", ""},
		{"mkdir fails", []string{"mkdir", s.url + wide + "0"}, 2, "exists", ""},
		{"chmod fails", []string{"chmod", "u+q", s.url + wide + "0"}, 1, "u+q", ""},
		{"rm -n", []string{"rm", "-n", s.url + "link"}, 0, "would", rows},
		{"sync -n", []string{"sync", "-n", b.path("srv"), b.path("other")}, 0, "", rows},
		{"find", []string{"find", s.url}, 0, "plain%20name", rows},
		{"grep", []string{"grep", "-r", "-c", "text", s.url}, 0, "plain%20name", rows},
		{"du", []string{"du", "-h", s.url}, 0, "", rows},
		{"df", []string{"df", "-h", s.url}, 0, "", rows},
		{"scan", []string{"scan", s.url}, 0, "", rows},
		{"job show fails", []string{"job", "show", "none"}, 1, "none", ""},
		{"serve --check", []string{"serve", "-c", good, "--check"}, 0, "OK, 1 export", ""},
		{"serve --check fails", []string{"serve", "-c", wrong, "--check"}, 1, "no such key", ""},
		{"serve of nothing", []string{"serve", b.path("none of this name is there")}, 1, "no such file", ""},
		{"serve, port in use", []string{"serve", noJobs, "--state-dir", b.path("another state"), "--listen", strings.TrimSuffix(strings.TrimPrefix(s.url, "nfs://"), "/")}, 1, "in use", "^time="},
		{"serve, wrong flags", []string{"serve", noJobs, "--squash", "nobody"}, 1, "nobody", ""},
		{"urls", []string{"urls"}, 0, "HOST", "^    |^  "},
		{"usage", []string{"cp", "--no-such-flag"}, 1, "unknown flag", ""},
	} {
		for _, columns := range widths {
			t.Run(fmt.Sprintf("%s/%d", c.name, columns), func(t *testing.T) {
				args := slices.Clone(c.args)
				if last := len(args) - 1; args[last] == "DEST" {
					args[last] = b.path(fmt.Sprintf("copy %d", columns))
				}
				status, drawn := b.onScreen(t, columns, args...)
				if status != c.status || !strings.Contains(unfolded(drawn), c.want) {
					t.Errorf("exit status %d, want %d, and %q\n%s", status, c.status, c.want, drawn)
				}
				b.fitting(t, drawn, int(columns), c.free)
			})
		}
	}
}

// TestHelpScreens reads the help of every command on terminals of several widths. Examples, which are to be
// typed, stay as they are where 80 columns are too many.
func TestHelpScreens(t *testing.T) {
	b := newBox(t)
	all := [][]string{{}}
	for i := 0; i < len(all); i++ { // commands have commands
		help := b.must(0, append(slices.Clone(all[i]), "--help")...).stdout
		if _, list, ok := strings.Cut(help, "\nCommands:\n"); ok {
			for _, row := range regexp.MustCompile(`(?m)^  ([a-z]+(?: [a-z]+)*)(?:  |$)`).FindAllStringSubmatch(list, -1) {
				all = append(all, strings.Fields(row[1]))
			}
		}
	}
	if len(all) < 30 {
		t.Fatalf("%d commands were found: %q", len(all), all)
	}
	for _, command := range all {
		for _, columns := range widths {
			t.Run(fmt.Sprintf("%s/%d", strings.Join(command, " "), columns), func(t *testing.T) {
				status, drawn := b.onScreen(t, columns, append(slices.Clone(command), "--help")...)
				if status != 0 {
					t.Errorf("exit status %d\n%s", status, drawn)
				}
				flags, text, ok := strings.Cut(drawn, "\nDESCRIPTION\n")
				if !ok { // of no command
					text, flags, _ = strings.Cut(drawn, "\nFlags:")
				}
				examples := ""
				if columns < 80 {
					examples = "^    "
				}
				b.fitting(t, text, int(columns), examples)
				b.fitting(t, flags, int(columns), "")
			})
		}
	}
}

// closedPort is an address at which nothing listens.
func (b *box) closedPort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	b.no(err)
	b.no(l.Close())
	return l.Addr().String()
}

// silentPort is an address that accepts connections, and answers nothing.
func (b *box) silentPort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts
	b.no(err)
	b.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// onScreen runs the command on a terminal of so many columns, and returns what was written to that. A
// command that draws screens is told to quit when it has drawn one.
func (b *box) onScreen(t *testing.T, columns uint16, args ...string) (status int, drawn string) {
	t.Helper()
	on := &box{T: t, dir: b.dir, bin: b.bin}
	screen, tty := on.terminal(columns)
	cmd := on.command(args...)
	for _, v := range []string{"COLUMNS", "NO_COLOR", "LS_COLORS"} {
		cmd.Env = append(cmd.Env, v+"=")
	}
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	const end, over = "\x00THE END\x00", "\x1b[J"
	all := make(chan string, 1)
	go func() {
		var read strings.Builder
		piece, quit := make([]byte, 4096), false
		for {
			n, err := screen.Read(piece)
			read.Write(piece[:n])
			if !quit && strings.Contains(read.String(), over) {
				quit = true
				_, _ = screen.WriteString("q") // it may have ended
			}
			if err != nil || strings.Contains(read.String(), end) {
				all <- strings.TrimSuffix(read.String(), end)
				return
			}
		}
	}()
	err := cmd.Run()
	_, werr := tty.WriteString(end)
	on.no(werr)
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), strings.ReplaceAll(<-all, "\r\n", "\n")
}

// unfolded is a text without its breaks.
func unfolded(text string) string { return strings.Join(strings.Fields(text), " ") }

// steers are the escape sequences that change no column.
var steers = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

const erase = "\r\x1b[K"

// fitting looks at each line that was drawn. Those that free matches may be wider than the terminal.
func (b *box) fitting(t *testing.T, drawn string, width int, free string) {
	t.Helper()
	if at := strings.LastIndex(drawn, erase); at >= 0 && !strings.Contains(drawn[at+len(erase):], "\n") && at+len(erase) < len(drawn) {
		t.Errorf("a line of progress stays: %q", drawn[at:])
	}
	for _, line := range strings.Split(drawn, "\n") {
		for i, frame := range strings.Split(line, erase) {
			progress := i > 0 && i < strings.Count(line, erase) || i == 0 && strings.Contains(line, erase)
			frame = strings.TrimRight(steers.ReplaceAllString(frame, ""), " \r")
			n, whole := columnsOf(frame)
			switch {
			case !whole:
				t.Errorf("a character was cut: %q", frame)
			case progress && n >= width:
				t.Errorf("a line of progress has %d columns: %q", n, frame)
			case n <= width, len(strings.Fields(frame)) <= 1, strings.HasPrefix(strings.TrimSpace(frame), b.bin):
			case free != "" && regexp.MustCompile(free).MatchString(frame):
			default:
				t.Errorf("%d columns: %q", n, frame)
			}
		}
	}
}

// columnsOf is how many columns a line takes, as far as this test has characters. whole is false if one was
// cut, or a mark has lost its own.
func columnsOf(line string) (n int, whole bool) {
	before := ' '
	for _, r := range line {
		switch {
		case r == '\ufffd':
			return n, false
		case r == '\t':
			n += 8 - n%8
		case r == '\u0301':
			if before != 'e' {
				return n, false
			}
		case before == 'e' && r == '…': // of the names that have it, every e has a mark
			return n, !strings.Contains(line, "e\u0301")
		case r >= 0x3000 && r < 0xa000:
			n += 2
		default:
			n++
		}
		before = r
	}
	return n, true
}
