package main

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/view"
	"github.com/nfsbox/nfsbox/internal/testkit/pty"
	"github.com/nfsbox/nfsbox/internal/tools/terminal"
)

// TestTopDraws has nfsbox top draw a screen, draw it anew when the terminal gets
// another size, and leave it as it was.
func TestTopDraws(t *testing.T) {
	t.Setenv("TERM", "xterm")
	screen, tty := pty.Open(t, 100, 30)
	s := httptest.NewServer(view.New(view.Options{Source: func() view.Snapshot { return view.Snapshot{URL: "nfs://shown/"} }}))
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stderr, ended := new(bytes.Buffer), make(chan int, 1)
	go func() {
		ended <- run(&env{ctx: ctx, stdout: tty, stderr: stderr, size: terminal.Size(tty)}, []string{"top", "--every", "1m", s.URL})
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
	screen, tty := pty.Open(t, 100, 30)
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
		ended <- run(&env{ctx: t.Context(), stdout: tty, stderr: new(bytes.Buffer), stdin: tty, size: terminal.Size(tty)}, []string{"top", "--every", "1m", s.URL})
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
