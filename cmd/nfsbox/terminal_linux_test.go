package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/view"
)

// pty makes a terminal of this size (pty(7)): what is written to tty comes out of
// screen.
func pty(t *testing.T, width, height uint16) (screen, tty *os.File) {
	t.Helper()
	open := func(name string) *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Skipf("NOT TESTED: no terminal can be had: %v", err)
		}
		t.Cleanup(func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
		return f
	}
	screen = open("/dev/ptmx")
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty = open(fmt.Sprintf("/dev/pts/%d", n))
	resize(t, tty, width, height)
	return screen, tty
}

func resize(t *testing.T, tty *os.File, width, height uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		t.Fatal(err)
	}
}

// TestTerminal measures terminals, and what is none.
func TestTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	_, tty := pty(t, 132, 43)
	for _, want := range [][2]uint16{{132, 43}, {40, 10}, {0, 0}} {
		resize(t, tty, want[0], want[1])
		if want[0] == 0 {
			want = [2]uint16{usualWidth, usualHeight}
		}
		if width, height := terminal(tty)(); width != int(want[0]) || height != int(want[1]) {
			t.Errorf("%d by %d, want %v", width, height, want)
		}
	}
	t.Setenv("TERM", "dumb")
	if terminal(tty) != nil {
		t.Error("a dumb terminal is drawn on")
	}
	t.Setenv("TERM", "xterm")
	for _, name := range []string{os.DevNull, filepath.Join(t.TempDir(), "file")} {
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if terminal(f) != nil {
			t.Errorf("%s is a terminal", name)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestTopDraws has nfsbox top draw a screen, draw it anew when the terminal gets
// another size, and leave it as it was.
func TestTopDraws(t *testing.T) {
	t.Setenv("TERM", "xterm")
	screen, tty := pty(t, 100, 30)
	s := httptest.NewServer(view.New(view.Options{Source: func() view.Snapshot { return view.Snapshot{URL: "nfs://shown/"} }}))
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stderr, ended := new(bytes.Buffer), make(chan int, 1)
	go func() {
		ended <- run(&env{ctx: ctx, stdout: tty, stderr: stderr, size: terminal(tty)}, []string{"top", "--every", "1m", s.URL})
	}()
	drawn, piece := "", make([]byte, 4096)
	const late = "too late"
	defer time.AfterFunc(time.Minute, func() { _, _ = tty.WriteString(late) }).Stop() // a Read waits for something
	until := func(want string) {
		t.Helper()
		for !strings.Contains(drawn, want) {
			n, err := screen.Read(piece)
			if err != nil || strings.Contains(drawn, late) {
				t.Fatalf("%v behind %q, no %q", err, drawn, want)
			}
			drawn += string(piece[:n])
		}
		_, drawn, _ = strings.Cut(drawn, want)
	}
	until("\x1b[?1049h")
	until("nfs://shown/")
	until("\x1b[J")
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	until("nfs://shown/")
	until("\x1b[J")
	stop()
	until("\x1b[?1049l")
	if status := <-ended; status != exitOK || stderr.Len() > 0 {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// TestTopKeys has nfsbox top sort by a key, end by another, and leave the terminal as it was.
func TestTopKeys(t *testing.T) {
	t.Setenv("TERM", "xterm")
	screen, tty := pty(t, 100, 30)
	before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(view.New(view.Options{Source: func() view.Snapshot {
		return view.Snapshot{Clients: []view.Client{{Name: "192.0.2.7", Conns: 1}}}
	}}))
	defer s.Close()
	ended := make(chan int, 1)
	go func() {
		ended <- run(&env{ctx: t.Context(), stdout: tty, stderr: new(bytes.Buffer), stdin: tty, size: terminal(tty)}, []string{"top", "--every", "1m", s.URL})
	}()
	drawn, piece := "", make([]byte, 4096)
	const late = "too late"
	defer time.AfterFunc(time.Minute, func() { _, _ = tty.WriteString(late) }).Stop()
	for _, step := range []struct{ want, press string }{{"OPS/S▾", "b"}, {"BYTES/S▾", "q"}, {"\x1b[?1049l", ""}} {
		for !strings.Contains(drawn, step.want) {
			n, err := screen.Read(piece)
			if err != nil || strings.Contains(drawn, late) {
				t.Fatalf("%v behind %q, no %q", err, drawn, step.want)
			}
			drawn += string(piece[:n])
		}
		_, drawn, _ = strings.Cut(drawn, step.want)
		if _, err := screen.WriteString(step.press); err != nil {
			t.Fatal(err)
		}
	}
	if status := <-ended; status != exitOK {
		t.Errorf("status %d", status)
	}
	if after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS); err != nil || *after != *before {
		t.Errorf("the terminal is not as it was: %+v, %v", after, err)
	}
}

// TestTopIntoTheVoid tells of an output that takes nothing.
func TestTopIntoTheVoid(t *testing.T) {
	s := httptest.NewServer(view.New(view.Options{Source: func() view.Snapshot { return view.Snapshot{} }}))
	defer s.Close()
	stderr := new(bytes.Buffer)
	status := run(&env{ctx: t.Context(), stdout: fullDisk{}, stderr: stderr}, []string{"top", "--once", s.URL})
	if status != exitIncomplete || !strings.Contains(stderr.String(), "standard output: ") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no room") }
