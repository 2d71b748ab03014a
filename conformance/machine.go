//go:build linux

package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// memory of a guest, and its processors.
	memory     = "1536M"
	processors = "2"

	// mark begins the lines of a guest that are for this package.
	mark = "conformance: "

	// maxConsole is how much of the console is kept for a message.
	maxConsole = 64 << 10

	// endTime is how long QEMU may take to end once it has been told to.
	endTime = 10 * time.Second
)

// qemu is the emulator's name.
const qemu = "qemu-system-x86_64"

// machine is a guest that runs.
type machine struct {
	lines   <-chan string // what it says to us, without the mark; closed at its end
	cmd     *exec.Cmd
	console tail
	done    chan struct{}
}

// config says what is booted.
type config struct {
	kernel, image string
	params        []string // nfsbox.NAME=VALUE, for the guest
	forward       string   // more of QEMU's -netdev user
	disks         []string // raw images, /dev/vda and so on
}

func boot(ctx context.Context, c config) (*machine, error) {
	args := []string{
		"-machine", "pc,usb=off", "-accel", "tcg,thread=multi", "-cpu", "max",
		"-smp", processors, "-m", memory, "-display", "none", "-nodefaults", "-no-reboot", "-serial", "stdio",
		"-kernel", c.kernel, "-initrd", c.image,
		"-append", "console=ttyS0 quiet loglevel=3 panic=-1 oops=panic mitigations=off nokaslr ipv6.disable=1 " + strings.Join(c.params, " "),
		"-netdev", "user,id=net,ipv6=off,restrict=off" + c.forward, "-device", "virtio-net-pci,netdev=net",
		"-device", "virtio-rng-pci",
	}
	for i, disk := range c.disks {
		args = append(args, "-drive", fmt.Sprintf("if=none,id=d%d,format=raw,cache=unsafe,file=%s", i, disk), "-device", fmt.Sprintf("virtio-blk-pci,drive=d%d", i))
	}
	m := &machine{cmd: exec.CommandContext(ctx, qemu, args...), done: make(chan struct{})}
	// The kernel kills it when this process ends.
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	m.cmd.Stderr = &m.console
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	lines := make(chan string, 1000)
	m.lines = lines
	go m.read(out, lines)
	return m, nil
}

// read passes on the marked lines until the guest ends.
func (m *machine) read(out io.Reader, lines chan<- string) {
	defer close(m.done)
	defer close(lines)
	for scan := bufio.NewScanner(io.TeeReader(out, &m.console)); scan.Scan(); {
		if _, line, ok := strings.Cut(scan.Text(), mark); ok {
			lines <- strings.TrimRight(line, "\r")
		}
	}
	_ = m.cmd.Wait() // the lines say how it ended
}

// stop ends the guest.
func (m *machine) stop() error {
	if err := m.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	go func() {
		for range m.lines { // so that its reader is not held up
		}
	}()
	select {
	case <-m.done:
		return nil
	case <-time.After(endTime):
		return errors.New("QEMU does not end")
	}
}
