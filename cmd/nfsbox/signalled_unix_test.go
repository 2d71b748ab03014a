//go:build unix

package main

import (
	"bytes"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// signalled runs the command until it has reached a server that does not answer, and ends it by a signal.
func signalled(t *testing.T, mute net.Listener, args []string) {
	t.Helper()
	cmd := exec.Command("nfsbox", args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }() // it has ended, if all went well
	conn, err := mute.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // nothing was written
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitInterrupted || !strings.Contains(said.String(), "interrupted") {
		t.Errorf("%q: %v\n%s", args, err, &said)
	}
}
