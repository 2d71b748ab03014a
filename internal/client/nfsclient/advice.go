package nfsclient

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

// exportIt is what to do on a server that exports nothing.
const exportIt = "export the directory (nfsbox: an [[export]] in nfsbox.toml, then SIGHUP; Linux: /etc/exports, then exportfs -ra)" //nolint:misspell // the name of a program

// advise says what to do about an error, in a sentence or two.
func (d *diagnosis) advise(err error) string {
	if refusal, ok := errors.AsType[*MountError](err); ok {
		return d.adviseMount(refusal)
	}
	if a, ok := errors.AsType[*oncrpc.AcceptError](err); ok {
		switch a.Stat {
		case oncrpc.ProgMismatch:
			if a.High == 0 {
				return "the server has other versions of this program: switch NFS version 3 on there"
			}
			return fmt.Sprintf("the server has versions %d to %d of this program: switch NFS version 3 on there (Linux: vers3=y in /etc/nfs.conf)", a.Low, a.High)
		case oncrpc.ProgUnavail:
			return "another service is at this port: give the right one with nfsport= or mountport=, or none to ask the portmapper"
		}
		return "the server failed; its log may say why"
	}
	if _, ok := errors.AsType[*oncrpc.DeniedError](err); ok {
		return "the server does not take this caller's credential (AUTH_SYS); see the export's sec= option"
	}
	// First a Status: NFS3ERR_NOTSUPP is errors.ErrUnsupported as well.
	if text := adviseStatus(err); text != "" {
		return text + d.aboutPort(err)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return "allow sec=sys for this export: Kerberos is not built yet"
	}
	return adviseNetwork(err)
}

func (d *diagnosis) adviseMount(refusal *MountError) string {
	e := d.exportOf(refusal.Path)
	switch {
	case d.exports == nil:
		return "see the server's list of exports" + d.aboutPort(refusal)
	case len(d.exports) == 0:
		return exportIt
	case e == nil:
		return "the path lies in no export; there are " + listExports(d.exports)
	case refusal.Status == vfs.ErrAccess || refusal.Status == vfs.ErrPerm:
		return fmt.Sprintf("%s is exported %s: see that this host is among them (nfsbox: allow, --allow and clients; Linux: /etc/exports)", e.Path, whom(e)) + d.aboutPort(refusal)
	}
	return fmt.Sprintf("%s is exported, but %s cannot be mounted: see that it exists there", e.Path, refusal.Path)
}

// aboutPort adds that a privileged port may be needed, if the caller has none.
func (d *diagnosis) aboutPort(err error) string {
	port, ok := d.localPort()
	if !ok || port <= lastReserved || (!errors.Is(err, vfs.ErrAccess) && !errors.Is(err, vfs.ErrPerm)) {
		return ""
	}
	return fmt.Sprintf("; and servers that export with \"secure\", the default, refuse calls from ports above %d, such as %d: "+
		"run as root, give the program CAP_NET_BIND_SERVICE, or export with \"insecure\"", lastReserved, port)
}

func adviseStatus(err error) string {
	switch {
	case errors.Is(err, vfs.ErrStale), errors.Is(err, vfs.ErrBadHandle):
		return "the server does not know its own handle any more: " + exportIt +
			" anew, with an fsid= if the file system has no UUID"
	case errors.Is(err, vfs.ErrROFS):
		return "the export, or the file system below, is read-only: export it with rw"
	case errors.Is(err, vfs.ErrAccess), errors.Is(err, vfs.ErrPerm):
		return "say uid= and gid= in the URL for a user who may; root is squashed unless the export says no_root_squash"
	case errors.Is(err, vfs.ErrNoSpace), errors.Is(err, vfs.ErrQuota):
		return "make room on the server, or raise the user's quota"
	case errors.Is(err, vfs.ErrNoEnt), errors.Is(err, vfs.ErrNotDir), errors.Is(err, vfs.ErrNameTooLong):
		return "see that the path is written as it is on the server"
	case errors.Is(err, syscall.ELOOP):
		return fmt.Sprintf("the path leads through more than %d symbolic links, most likely in circles: mend them, or give the path without", vfs.MaxSymlinks)
	case errors.Is(err, vfs.ErrOutside):
		return "nothing is known of the server but what lies below the directory that was mounted: give the path of what the link leads to"
	case busy(err):
		return "the server puts everything off (NFS3ERR_JUKEBOX): it is overloaded, in its grace period, or fetches from tape"
	case errors.Is(err, vfs.ErrNotSupp):
		return "the server does not do that"
	}
	if _, ok := errors.AsType[*v3.StatusError](err); ok {
		return "the server, or the disk below it, has failed to do that: the server's log may say why"
	}
	return ""
}

// busy reports whether the server has answered that it is busy, also if the step timed out over
// that.
func busy(err error) bool {
	_, ended := errors.AsType[*v3.BusyError](err)
	return ended || errors.Is(err, vfs.ErrBusy)
}

func adviseNetwork(err error) string {
	silent := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
	switch {
	case silent && errors.Is(err, syscall.ECONNREFUSED): // two ports were tried
		return "one port does not answer (a firewall drops what is sent there, or the server hangs), and nothing listens at the other: " +
			"see that the server runs, and give the right ports in the URL: nfsport= and mountport="
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens at this port: see that the server runs, and that the port is right"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no way leads to this address: see the route, and whether the host is up"
	case silent:
		return "no answer: the host is down, a firewall drops what is sent to this port, or the server hangs"
	case errors.Is(err, syscall.ECONNRESET):
		return "the connection was cut: a firewall, or the server's host access control (hosts.allow)"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return "the system does not allow it: privileged ports need root or CAP_NET_BIND_SERVICE (noresvport does without)"
	}
	return "see that the server can be reached at this address and port, and that it is an NFS server"
}

func listExports(list []Export) string {
	var lines []string
	for i, e := range list {
		if i == maxListed {
			lines = append(lines, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		lines = append(lines, e.Path+" "+whom(&e))
	}
	return strings.Join(lines, ", ")
}

func whom(e *Export) string {
	if len(e.Groups) == 0 {
		return "(to everybody)"
	}
	return "(to " + strings.Join(e.Groups[:min(len(e.Groups), maxListed)], " ") + ")"
}

// exportOf is the export that a path lies in, or nil.
func (d *diagnosis) exportOf(path string) (best *Export) {
	path = strings.TrimSuffix(path, "/") + "/"
	for i := range d.exports {
		e := &d.exports[i]
		under := strings.HasPrefix(path, strings.TrimSuffix(e.Path, "/")+"/")
		if under && (best == nil || len(e.Path) > len(best.Path)) {
			best = e
		}
	}
	return best
}
