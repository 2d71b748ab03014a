package fault

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/nfsbox/nfsbox/vfs"
)

// ErrMute marks the error of a call over a connection that was just made, to which nothing has come
// back: the host is up.
var ErrMute = errors.New("the port accepts connections, and answers nothing")

// ErrForeign marks the error of a port at which another protocol than RPC is spoken.
var ErrForeign = errors.New("the port speaks another protocol")

// ExportIt is how a directory is exported.
const ExportIt = "export the directory (nfsbox: an [[export]] in nfsbox.toml, then SIGHUP; Linux: /etc/exports, then exportfs -ra)" //nolint:misspell // the name of a program

// Advice is what to do about the error of a server, in a sentence or two without a full stop;
// "" if the cause is unknown, or an interruption.
func Advice(err error) string {
	// First what is no status: some of it is found under statuses as well.
	switch {
	case errors.Is(err, syscall.ELOOP):
		return fmt.Sprintf("the path leads through more than %d symbolic links, most likely in circles: mend them, or give the path without", vfs.MaxSymlinks)
	case errors.Is(err, vfs.ErrOutside):
		return "nothing is known of the server but what lies below the directory that was mounted: give the path of what the link leads to"
	}
	if status, ok := errors.AsType[vfs.Status](err); ok {
		return adviseStatus(status)
	}
	return adviseNetwork(err)
}

func adviseStatus(status vfs.Status) string {
	switch status {
	case vfs.ErrStale, vfs.ErrBadHandle:
		return "the server does not know its own handle any more: " + ExportIt + " anew, with an fsid= if the file system has no UUID"
	case vfs.ErrROFS:
		return "the export, or the file system below, is read-only: export it with rw"
	case vfs.ErrAccess, vfs.ErrPerm:
		return "say uid= and gid= in the URL for a user who may; root is squashed unless the export says no_root_squash"
	case vfs.ErrNoSpace, vfs.ErrQuota:
		return "make room on the server, or raise the user's quota"
	case vfs.ErrNoEnt, vfs.ErrNotDir, vfs.ErrNameTooLong:
		return "see that the path is written as it is on the server"
	case vfs.ErrBusy:
		return "the server puts everything off (NFS3ERR_JUKEBOX): it is overloaded, in its grace period, fetches from tape, or passes on a server that is away"
	case vfs.ErrNotSupp:
		return "the server does not do that"
	}
	return ""
}

func adviseNetwork(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "see that the name of the host is written right, or give its address"
		}
		return "see that this host can ask its name server, or give the address"
	}
	switch silent := silent(err); {
	case errors.Is(err, ErrForeign):
		return "another service listens at this port: see that it is the right one (NFS has 2049, if nothing else was set)"
	case silent && errors.Is(err, syscall.ECONNREFUSED): // two ports were tried
		return "one port does not answer (a firewall drops what is sent there, or the server hangs), and nothing listens at the other: " +
			"see that the server runs, and give the right ports in the URL: nfsport= and mountport="
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens at this port: see that the server runs, and that the port is right"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no way leads to this address: see the route, and whether the host is up"
	case errors.Is(err, ErrMute):
		return "no answer, though connections are accepted: see that the port is right (another service may listen there), " +
			"that no firewall accepts in the server's place, and that the server does not hang"
	case silent:
		return "no answer: the host is down, a firewall drops what is sent to this port, or the server hangs"
	case errors.Is(err, syscall.ECONNRESET):
		return "the connection was cut: a firewall, or the server's host access control (hosts.allow)"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return "the system does not allow it: privileged ports need root or CAP_NET_BIND_SERVICE (noresvport does without)"
	}
	return ""
}
