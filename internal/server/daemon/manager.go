package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// Manager is the service manager that has started the process, as it presents
// itself in the environment: systemd, or what does as systemd (sd_notify(3),
// sd_listen_fds(3), sd_watchdog_enabled(3)). The zero Manager is none.
//
// The protocols are a datagram and a few variables. Decision 0030 says why they are spoken
// here, rather than by a library.
type Manager struct {
	Getenv func(string) string // os.Getenv; nil: there is no manager
	PID    int                 // this process; variables for another are not ours
}

func (m Manager) get(name string) string {
	if m.Getenv == nil {
		return ""
	}
	return m.Getenv(name)
}

// mine reports whether the variable holds this process' number.
func (m Manager) mine(name string) bool { return m.get(name) == strconv.Itoa(m.PID) }

// notify tells the manager of a new state, if there is a manager to be told.
func (m Manager) notify(state string) error {
	name := m.get("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	// A leading @ stands for the zero byte of an abstract name, for Go as well.
	c, err := net.DialTimeout("unixgram", name, notifyTime)
	if err != nil {
		return fmt.Errorf("service manager: %w", err)
	}
	err = c.SetDeadline(time.Now().Add(notifyTime))
	if err == nil {
		_, err = c.Write([]byte(state))
	}
	if err = errors.Join(err, c.Close()); err != nil {
		return fmt.Errorf("service manager: %w", err)
	}
	return nil
}

// watchdog ticks when a sign of life is due, at twice the rate that the manager asks for.
// It never ticks if the manager asks for none.
func (m Manager) watchdog() (ping <-chan time.Time, stop func()) {
	usec, err := strconv.ParseInt(m.get("WATCHDOG_USEC"), 10, 64)
	if err != nil || usec < 2 || usec > maxWatchdog.Microseconds() || m.get("WATCHDOG_PID") != "" && !m.mine("WATCHDOG_PID") {
		return nil, func() {}
	}
	t := time.NewTicker(time.Duration(usec) * time.Microsecond / 2)
	return t.C, t.Stop
}

// firstInherited is the descriptor with which those handed over begin
// (SD_LISTEN_FDS_START).
const firstInherited = 3

// inherited are the sockets that the manager hands over. Their ports say what they are
// for; their names (LISTEN_FDNAMES) do not matter. When ours are closed, the manager's
// stay open for the next process.
func (m Manager) inherited() (listeners []listener, err error) {
	if m.get("LISTEN_FDS") == "" || !m.mine("LISTEN_PID") {
		return nil, nil
	}
	n, err := strconv.Atoi(m.get("LISTEN_FDS"))
	if err != nil || n < 0 || n > maxInherited {
		return nil, fmt.Errorf("LISTEN_FDS=%q: at most %d sockets are taken over", m.get("LISTEN_FDS"), maxInherited)
	}
	for i := range n {
		x, err := inherit(uintptr(firstInherited + i))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("inherited socket %d: %w", i, err), closeAll(listeners))
		}
		listeners = append(listeners, x)
	}
	return listeners, nil
}

// portmapPort is the port mapper's (RFC 1833, section 3).
const portmapPort = "111"

func inherit(fd uintptr) (x listener, err error) {
	// If fewer were handed over than was said, this may be a descriptor of the runtime's
	// own: it must not be closed.
	if !isSocket(fd) {
		return listener{}, fmt.Errorf("descriptor %d is no socket: %w", fd, os.ErrInvalid)
	}
	f := os.NewFile(fd, "inherited")
	// What is made of f has a descriptor of its own, not handed on to children.
	defer func() { err = errors.Join(err, f.Close()) }()
	x.l, err = net.FileListener(f)
	if err != nil {
		var perr error
		if x.pc, perr = net.FilePacketConn(f); perr != nil {
			return listener{}, errors.Join(err, perr)
		}
	}
	_, port, err := net.SplitHostPort(x.addr().String())
	if err != nil {
		return listener{}, errors.Join(err, x.close())
	}
	x.portmap = port == portmapPort
	return x, nil
}
