//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// address is this machine's in QEMU's user network.
var address = net.IPv4(10, 0, 2, 15)

// boot mounts what every Linux has and loads the modules of the image.
func boot() error {
	for _, m := range []struct{ fstype, dir string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"},
	} {
		if err := mount(m.fstype, m.dir, m.fstype, ""); err != nil {
			return err
		}
	}
	if err := os.MkdirAll("/run/rpcbind", 0o755); err != nil {
		return err
	}
	for name, value := range map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C", "TMPDIR": "/tmp",
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	order, err := os.ReadFile("/modules/order")
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(order)) {
		if err := load("/modules/" + name); err != nil {
			return err
		}
	}
	return unix.Sethostname([]byte("guest"))
}

// mount mounts something on a directory, which it makes.
func mount(what, dir, fstype, options string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(what, dir, fstype, 0, options); err != nil {
		return fmt.Errorf("mount -t %s -o %s %s %s: %w", fstype, options, what, dir, err)
	}
	return nil
}

func load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = unix.FinitModule(int(f.Fd()), "", 0)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		err = fmt.Errorf("module %s: %w", path, err)
	} else {
		err = nil
	}
	return errors.Join(err, f.Close())
}

func network() error {
	if err := up("lo", net.IPv4(127, 0, 0, 1), net.CIDRMask(8, 32)); err != nil {
		return err
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		cards, err := net.Interfaces()
		if err != nil {
			return err
		}
		for _, card := range cards {
			if card.Flags&net.FlagLoopback == 0 && len(card.HardwareAddr) == 6 {
				return up(card.Name, address, net.CIDRMask(24, 32))
			}
		}
	}
	return errors.New("there is no network card")
}

func up(name string, ip net.IP, mask net.IPMask) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s) //nolint:errcheck // nothing was written to it
	set := func(request uint, fill func(*unix.Ifreq) error) error {
		r, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if err := fill(r); err != nil {
			return err
		}
		return unix.IoctlIfreq(s, request, r)
	}
	return errors.Join(
		set(unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(ip.To4()) }),
		set(unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr(mask) }),
		set(unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error {
			r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
			return nil
		}),
	)
}
