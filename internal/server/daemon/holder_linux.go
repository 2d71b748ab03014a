package daemon

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// maxProcesses and maxSockets bound the search for the process that has a port. What is
// beyond is not looked at.
const (
	maxProcesses = 1 << 16
	maxSockets   = 1 << 16
)

// searchTime bounds the search. /proc can keep its reader for as long as the memory of another process is
// in use: beside a file system in user space that hangs, for ever.
const searchTime = time.Second

// holder says which process listens at an address of tcp or udp, as far as /proc
// shows within searchTime, and begins to say what to do about it.
func holder(network, address string) string {
	return soon(func() string { return search(network, address) })
}

// soon is what search finds within searchTime. A search that takes longer is left to itself.
func soon(search func() string) string {
	found := make(chan string, 1)
	go func() { found <- search() }()
	select {
	case who := <-found:
		return who
	case <-time.After(searchTime):
		return somebody
	}
}

func search(network, address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return somebody
	}
	inode := ""
	for _, table := range []string{"/proc/net/" + network, "/proc/net/" + network + "6"} {
		if inode == "" {
			inode = listening(table, port)
		}
	}
	if inode == "" {
		return somebody
	}
	if holds("/proc/self", "socket:["+inode+"]") {
		return "this server has it already;"
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return somebody
	}
	for _, dir := range dirs[:min(len(dirs), maxProcesses)] {
		if holds(dir, "socket:["+inode+"]") {
			name, _ := os.ReadFile(filepath.Join(dir, "comm")) // without it, its number must do
			return fmt.Sprintf("process %s (%s) has it; end it, or", filepath.Base(dir), bytes.TrimSpace(name))
		}
	}
	return "no process that this user can see has it: one of another user, or the kernel's own NFS server (rpc.nfsd); end it, or"
}

// listening finds the socket that listens at the port in one of the kernel's
// tables (proc(5)), and returns its inode.
func listening(table, port string) string {
	const listen, unconnected = "0A", "07"
	want, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return ""
	}
	f, err := os.Open(table)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // only read
	lines := bufio.NewScanner(f)
	for n := 0; lines.Scan() && n < maxSockets; n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || fields[3] != listen && fields[3] != unconnected {
			continue
		}
		_, at, _ := strings.Cut(fields[1], ":")
		b, err := hex.DecodeString(at)
		if err == nil && len(b) == 2 && uint64(b[0])<<8|uint64(b[1]) == want {
			return fields[9]
		}
	}
	return ""
}

// holds reports whether the process has a descriptor of that kind open.
func holds(dir, link string) bool {
	fds, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return false // gone, or another user's
	}
	for _, fd := range fds {
		if to, err := os.Readlink(filepath.Join(dir, "fd", fd.Name())); err == nil && to == link {
			return true
		}
	}
	return false
}
