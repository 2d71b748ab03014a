//go:build linux

// Command guest is the first program of the machine that package conformance boots: /init of
// its initramfs. It loads modules and sets up the network. Then it is what the kernel's
// command line says: a client, which mounts a server of the host and works on it, or the
// kernel's server.
//
// It speaks to the host by lines on the console, which package conformance reads. It is of
// no other use.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The lines that the host looks for begin so.
const mark = "conformance: "

func say(format string, args ...any) {
	fmt.Println(mark + strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " | "))
}

func main() {
	if os.Getpid() != 1 {
		if err := child(os.Args[1:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	if err := run(); err != nil {
		say("broken %v", err)
	}
	say("end")
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		say("broken power off: %v", err)
	}
	time.Sleep(time.Hour) // the host ends the machine; process 1 must not end
}

func run() error {
	if err := boot(); err != nil {
		return err
	}
	params, err := commandLine()
	if err != nil {
		return err
	}
	if err := network(); err != nil {
		return err
	}
	switch role := params["role"]; role {
	case "client":
		return client(params)
	case "server":
		return serve()
	default:
		return fmt.Errorf("no role %q", role)
	}
}

// commandLine is what the host says: nfsbox.NAME=VALUE.
func commandLine() (map[string]string, error) {
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return nil, err
	}
	params := make(map[string]string)
	for word := range strings.FieldsSeq(string(line)) {
		name, value, _ := strings.Cut(word, "=")
		if name, ok := strings.CutPrefix(name, "nfsbox."); ok {
			params[name] = value
		}
	}
	return params, nil
}

// child runs in a second process of this program: one with locks of its own, or as another
// user.
func child(args []string) error {
	if len(args) == 3 && args[0] == "lock" {
		return holdLock(args[1], args[2])
	}
	if len(args) == 2 && args[0] == "denied" {
		return denied(args[1])
	}
	if len(args) == 2 && args[0] == "relay" {
		return relay(args[1])
	}
	return errors.New("it is to be the first process of a machine of its own")
}

// relay connects its standard input and output to an address. It runs on the host: QEMU
// starts it for a connection of the guest's.
func relay(addr string) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	done := make(chan error, 2)
	go func() {
		_, err := io.Copy(c, os.Stdin)
		done <- err
	}()
	go func() {
		_, err := io.Copy(os.Stdout, c)
		done <- err
	}()
	return errors.Join(<-done, c.Close()) // either end is the end
}
