package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// prepareProcess raises the limit of descriptors to what the configuration may need. Then
// it drops the capability by which a process exceeds quotas and takes the blocks that are
// reserved for root: what clients write counts as theirs.
func prepareProcess(c *config.Config, log *slog.Logger) {
	need := descriptors(c)
	if have, err := raiseFiles(need); err != nil {
		log.Warn("too few descriptors for what is configured: connections or open files will be refused; raise the limit (LimitNOFILE=, ulimit -n) or lower max-connections, max-open-files and api-max-connections",
			slog.Uint64("needed", need), slog.Uint64("limit", have), slog.Any("error", err))
	}
	if err := dropCapability(unix.CAP_SYS_RESOURCE); err != nil {
		log.Warn("CAP_SYS_RESOURCE stays: clients may exceed quotas and take the blocks that are reserved for root; start the process without it (CapabilityBoundingSet=)",
			slog.Any("error", err))
	}
}

// descriptors is how many the configuration may need: for connections, for the
// files of each directory, of which localfs takes at most half, and others.
func descriptors(c *config.Config) uint64 {
	files := uint64(c.MaxOpenFiles) * uint64(max(len(c.Exports), 1))
	files = max(files, 2*uint64(c.MaxOpenFiles)) + otherFiles
	if c.LocalIO != config.LocalIOOff {
		files += localFiles
	}
	if a := &c.API; a.On() {
		files += uint64(a.MaxConnections)
		if a.Store != "" {
			files += uint64(a.MaxCalls) + storeFiles
		}
	}
	return uint64(c.MaxConnections) + files
}

func fileLimit() uint64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return limit.Cur
}

// raiseFiles makes sure of n descriptors, and returns how many there are.
func raiseFiles(n uint64) (uint64, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	if limit.Cur >= n {
		return limit.Cur, nil
	}
	want := unix.Rlimit{Cur: n, Max: max(limit.Max, n)}
	err := unix.Setrlimit(unix.RLIMIT_NOFILE, &want)
	if err == nil {
		return n, nil
	}
	if limit.Cur < limit.Max {
		limit.Cur = limit.Max
		err = errors.Join(err, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	}
	return limit.Cur, fmt.Errorf("setrlimit: %w", err)
}

// capabilities are those of a thread, 64 bits in two halves (capget(2)).
type capabilities [2]unix.CapUserData

func (c *capabilities) without(n uint) {
	word := &c[n/32]
	bit := uint32(1) << (n % 32)
	word.Effective &^= bit
	word.Permitted &^= bit
	word.Inheritable &^= bit
}

func (c *capabilities) has(n uint) bool {
	return (c[n/32].Permitted|c[n/32].Inheritable)&(1<<(n%32)) != 0
}

// dropCapability drops a capability in all threads of the process, and in those to come.
func dropCapability(n uint) error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps capabilities
	if err := unix.Capget(&head, &caps[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	if !caps.has(n) {
		return nil
	}
	caps.without(n)
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&caps[0])), 0)
	runtime.KeepAlive(&caps)
	switch errno {
	case 0:
		return nil
	case syscall.ENOTSUP:
		return dropAndStartAnew(n, &head, &caps)
	}
	return fmt.Errorf("capset: %w", errno)
}

// dropAndStartAnew is dropCapability for a program with cgo, whose threads the runtime does
// not know all: it drops the capability in this thread, for good, and executes the program
// again from here. It returns only if that fails.
func dropAndStartAnew(n uint, head *unix.CapUserHeader, caps *capabilities) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Without this, root would have the capability back.
	if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(n), 0, 0, 0); err != nil {
		return fmt.Errorf("prctl(PR_CAPBSET_DROP): %w", err)
	}
	if err := unix.Capset(head, &caps[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return fmt.Errorf("exec: %w", syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
}

// isSocket reports whether a descriptor is open, and a socket.
func isSocket(fd uintptr) bool {
	_, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil
}

// monotonic is the time of a reload as sd_notify(3) wants it.
func monotonic() string {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return ""
	}
	return fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/1000)
}
