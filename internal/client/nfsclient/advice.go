package nfsclient

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

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
	if busy(err) {
		err = vfs.ErrBusy
	}
	if _, ok := errors.AsType[vfs.Status](err); !ok && errors.Is(err, errors.ErrUnsupported) {
		return "allow sec=sys for this export: Kerberos is not built yet"
	}
	if text := fault.Advice(err); text != "" {
		return text + d.aboutPort(err)
	}
	if _, ok := errors.AsType[*v3.StatusError](err); ok {
		return "the server, or the disk below it, has failed to do that: the server's log may say why"
	}
	return "see that the server can be reached at this address and port, and that it is an NFS server"
}

func (d *diagnosis) adviseMount(refusal *MountError) string {
	e := d.exportOf(refusal.Path)
	switch {
	case d.exports == nil:
		return "see the server's list of exports" + d.aboutPort(refusal)
	case len(d.exports) == 0:
		return fault.ExportIt
	case e == nil:
		return "the path lies in no export; there are " + listExports(d.exports)
	case refusal.Status == vfs.ErrAccess || refusal.Status == vfs.ErrPerm:
		return fmt.Sprintf("%s is exported %s: see that this host is among them (nfsbox: allow, --allow and clients; Linux: /etc/exports)", e.Path, whom(e)) + d.aboutPort(refusal)
	}
	text := fmt.Sprintf("%s is exported, but %s cannot be mounted: see that it exists there", e.Path, refusal.Path)
	if refusal.Status == vfs.ErrServerFault || refusal.Status == vfs.ErrIO {
		text += "; if it was removed and made again, or mounted over, have the server read its exports anew (nfsbox: SIGHUP; Linux: exportfs -ra)" //nolint:misspell // the name of a program
	}
	return text
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

// busy reports whether the server has answered that it is busy, also if the step timed out over
// that.
func busy(err error) bool {
	_, ended := errors.AsType[*v3.BusyError](err)
	return ended || errors.Is(err, vfs.ErrBusy)
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
