package session

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxPeerGroups is how many groups a process can have (NGROUPS_MAX).
const maxPeerGroups = 65536

// peerOf asks the kernel for the process at the other end of c.
func peerOf(c *net.UnixConn) (Peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("localio: %w", err)
	}
	var cred *unix.Ucred
	var groups []uint32
	var credErr, groupsErr error
	if err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		groups, groupsErr = peerGroups(fd)
	}); err == nil {
		err = errors.Join(credErr, groupsErr)
	}
	if err != nil {
		return Peer{}, fmt.Errorf("localio: who the peer is: %w", err)
	}
	p := Peer{UID: cred.Uid, GID: cred.Gid, Groups: groups, PID: cred.Pid}
	if p.PID > 0 {
		p.UserNS = userNS(strconv.Itoa(int(p.PID)))
	}
	return p, nil
}

// peerGroups is SO_PEERGROUPS. If the buffer is too small, the kernel says how large it must be.
func peerGroups(fd uintptr) ([]uint32, error) {
	groups := make([]uint32, 32)
	for {
		size := uint32(len(groups) * 4)
		_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		n := int(size / 4)
		switch {
		case e == 0:
			return groups[:min(n, len(groups))], nil
		case e != unix.ERANGE || n <= len(groups) || n > maxPeerGroups:
			return nil, fmt.Errorf("SO_PEERGROUPS: %w", e)
		}
		groups = make([]uint32, n)
	}
}

// UserNS is the inode of this process's user namespace; 0 if it is not known.
func UserNS() uint64 { return userNS("self") }

// userNS is the inode of a process's user namespace, which identifies it during its life. 0: we
// are not permitted to ask.
func userNS(pid string) uint64 {
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+pid+"/ns/user", &st); err != nil {
		return 0
	}
	return st.Ino
}
