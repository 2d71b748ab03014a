package sockdiag

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Owner returns the user whose socket is at the far end of nc, a connection over TCP
// within this host, as a number of this process' user namespace. Root of another
// namespace is the user that the namespace maps it to. Sockets of the kernel itself are
// root's. It is ErrUnknown if the far end does not exist any more.
//
// Sockets are found by their addresses. To be sure, Owner then finds the near end in the
// same way, and checks that it is nc: so no other socket can have had the far end's
// addresses.
func Owner(nc net.Conn) (uint32, error) {
	t, ok := nc.(*net.TCPConn)
	if !ok {
		return 0, fmt.Errorf("%w: it is no connection over TCP", ErrUnknown)
	}
	near, far := plain(t.LocalAddr()), plain(t.RemoteAddr())
	if !near.IsValid() || !far.IsValid() {
		return 0, ErrUnknown
	}
	mine, err := inode(t)
	if err != nil {
		return 0, err
	}
	d, err := open()
	if err != nil {
		return 0, err
	}
	defer d.close()
	theirs, err := d.find(far, near)
	if err != nil {
		return 0, err
	}
	ours, err := d.find(near, far)
	switch {
	case err != nil:
		return 0, err
	case !ours.in(unix.BPF_TCP_ESTABLISHED, unix.BPF_TCP_CLOSE_WAIT) || ours.inode != mine:
		return 0, ErrUnknown
	// A socket that was closed has no inode, and the kernel says that it is root's.
	case !theirs.in(unix.BPF_TCP_ESTABLISHED, unix.BPF_TCP_FIN_WAIT1, unix.BPF_TCP_FIN_WAIT2) || theirs.inode == 0:
		return 0, ErrUnknown
	}
	return theirs.uid, nil
}

// Works is nil if Owner works here: it tries a connection of its own. Kernels without
// inet_diag, and emulations of Linux, cannot.
func Works() (err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	from, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	for {
		nc, err := l.Accept()
		if err != nil {
			return err
		}
		if nc.RemoteAddr().String() != from.LocalAddr().String() {
			if err := nc.Close(); err != nil { // another program's
				return err
			}
			continue
		}
		uid, err := Owner(nc)
		if err == nil && int(uid) != os.Geteuid() {
			err = fmt.Errorf("sockdiag: the kernel takes user %d for %d", os.Geteuid(), uid)
		}
		return errors.Join(err, nc.Close())
	}
}

// plain is an address and port, IPv4 as such; the zero AddrPort if a has none.
func plain(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := t.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
}

// inode is the number of a socket's inode.
func inode(t *net.TCPConn) (n uint32, err error) {
	raw, err := t.SyscallConn()
	if err != nil {
		return 0, err
	}
	var st unix.Stat_t
	if e := raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &st) }); e != nil {
		return 0, e
	}
	return uint32(st.Ino), err // as sock_diag tells it
}

// diag is a socket of NETLINK_SOCK_DIAG.
type diag struct{ fd int }

// answerTime bounds the wait for the kernel, which answers within the call.
const answerTime = time.Second

func open() (*diag, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("sockdiag: %w", os.NewSyscallError("socket", err))
	}
	d := &diag{fd}
	limit := unix.NsecToTimeval(answerTime.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		d.close()
		return nil, fmt.Errorf("sockdiag: %w", os.NewSyscallError("setsockopt", err))
	}
	return d, nil
}

func (d *diag) close() {
	_ = unix.Close(d.fd) // of a socket on which nothing is under way
}

// socket is what the kernel tells of a socket.
type socket struct {
	state      uint8
	uid, inode uint32
}

func (s *socket) in(states ...uint8) bool {
	for _, st := range states {
		if s.state == st {
			return true
		}
	}
	return false
}

// The messages, as in <linux/sock_diag.h> and <linux/inet_diag.h>. Numbers are in the
// machine's byte order, ports and addresses in that of the network.
const (
	sockDiagByFamily = 20

	headSize    = unix.SizeofNlMsghdr
	requestSize = headSize + 8 + 48 // inet_diag_req_v2
	answerSize  = headSize + 72     // inet_diag_msg
	answerState = headSize + 1
	answerUID   = headSize + 64
	answerInode = headSize + 68
)

// find returns the socket at local that is connected to remote.
func (d *diag) find(local, remote netip.AddrPort) (socket, error) {
	if err := unix.Sendto(d.fd, request(local, remote), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return socket{}, fmt.Errorf("sockdiag: %w", os.NewSyscallError("sendto", err))
	}
	var b [1024]byte
	n, from, err := unix.Recvfrom(d.fd, b[:], 0)
	if err != nil {
		return socket{}, fmt.Errorf("sockdiag: %w", os.NewSyscallError("recvfrom", err))
	}
	if k, ok := from.(*unix.SockaddrNetlink); !ok || k.Pid != 0 || n < headSize+4 {
		return socket{}, fmt.Errorf("%w: an answer that is not the kernel's", ErrUnknown)
	}
	switch kind := binary.NativeEndian.Uint16(b[4:]); {
	case kind == unix.NLMSG_ERROR:
		no := unix.Errno(-int32(binary.NativeEndian.Uint32(b[headSize:])))
		if no == unix.ENOENT {
			return socket{}, ErrUnknown
		}
		return socket{}, fmt.Errorf("sockdiag: %w", no)
	case kind != sockDiagByFamily || n < answerSize:
		return socket{}, fmt.Errorf("%w: an answer of kind %d and %d bytes", ErrUnknown, kind, n)
	}
	return socket{
		state: b[answerState],
		uid:   binary.NativeEndian.Uint32(b[answerUID:]), inode: binary.NativeEndian.Uint32(b[answerInode:]),
	}, nil
}

func request(local, remote netip.AddrPort) []byte {
	family, size := byte(unix.AF_INET), 4
	if local.Addr().Is6() {
		family, size = unix.AF_INET6, 16
	}
	var b [requestSize]byte
	binary.NativeEndian.PutUint32(b[0:], requestSize)
	binary.NativeEndian.PutUint16(b[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	q := b[headSize:]
	q[0], q[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(q[4:], 1<<32-1) // in every state
	binary.BigEndian.PutUint16(q[8:], local.Port())
	binary.BigEndian.PutUint16(q[10:], remote.Port())
	copy(q[12:12+size], local.Addr().AsSlice())
	copy(q[28:28+size], remote.Addr().AsSlice())
	for i := 48; i < 56; i++ {
		q[i] = 0xff // INET_DIAG_NOCOOKIE
	}
	return b[:]
}
