package nfsclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// mountd calls a server's MOUNT service (RFC 1813, appendix I).
type mountd struct {
	rpc  *oncrpc.Client
	port uint16
	auth oncrpc.Auth

	early map[string]*asked // by path: at most two, see Conn.begin
}

// asked is a MNT call that was sent before its answer was needed.
type asked struct {
	stop context.CancelFunc
	done chan struct{} // closed when it was answered or given up
	root vfs.Handle
	err  error
}

// ask sends MNT for a path, once, and does not wait. patience bounds the call; 0 is an ordinary
// call's.
func (m *mountd) ask(ctx context.Context, path string, patience time.Duration) *asked {
	if a := m.early[path]; a != nil {
		return a
	}
	a := &asked{done: make(chan struct{})}
	if patience > 0 {
		ctx, a.stop = context.WithTimeout(ctx, patience)
	} else {
		ctx, a.stop = context.WithCancel(ctx)
	}
	if m.early == nil {
		m.early = make(map[string]*asked)
	}
	m.early[path] = a
	go func() {
		defer close(a.done)
		defer a.stop()
		a.root, a.err = m.call(ctx, path)
	}()
	return a
}

func (a *asked) answer() (vfs.Handle, error) {
	<-a.done
	return a.root, a.err
}

func (m *mountd) forget() {
	for _, a := range m.early {
		a.stop()
		<-a.done
	}
	m.early = nil
}

func (m *mountd) close() error {
	m.forget()
	return m.rpc.Close()
}

// MountError is a server's refusal to mount a path. It is the vfs.Status that
// has the number of the mount status.
type MountError struct {
	Path   string
	Status vfs.Status
}

// Error implements error.
func (e *MountError) Error() string {
	hint := ""
	switch e.Status {
	case vfs.ErrAccess, vfs.ErrPerm:
		hint = "; the server's list of exports says what it offers to whom"
	case vfs.ErrNoEnt:
		hint = "; is it exported?"
	}
	return fmt.Sprintf("nfs: mount %q: %v%s", e.Path, e.Status, hint)
}

// Unwrap returns the cause.
func (e *MountError) Unwrap() error { return e.Status }

// mnt returns the handle of a directory. If it was asked for early, that answer is used. A call that
// failed early is made again: the connection may have been lost, or the patience too short. But
// after a call with full patience it is not.
func (m *mountd) mnt(ctx context.Context, path string) (vfs.Handle, error) {
	if a := m.early[path]; a != nil {
		root, err := a.answer()
		if _, refused := errors.AsType[*MountError](err); err == nil || refused || errors.Is(err, oncrpc.ErrTimeout) {
			return root, err
		}
	}
	return m.call(ctx, path)
}

// call asks for the handle of a directory (procedure 1).
func (m *mountd) call(ctx context.Context, path string) (h vfs.Handle, err error) {
	if len(path) > mount3.MNTPATHLEN {
		return h, &MountError{Path: path, Status: vfs.ErrNameTooLong}
	}
	args, res := mount3.Mountargs{Path: []byte(path)}, mount3.Mountres3{}
	reply, err := m.rpc.Call(ctx, mount3.MOUNTPROC3_MNT, m.auth, &args, &res)
	defer reply.Release()
	if err != nil {
		return h, fmt.Errorf("nfs: mount %q: %w", path, err)
	}
	if res.FhsStatus != mount3.MNT3_OK {
		return h, &MountError{Path: path, Status: vfs.Status(uint32(res.FhsStatus))}
	}
	if err := takesAuthSys(res.Mountinfo.AuthFlavors); err != nil {
		return h, fmt.Errorf("nfs: mount %q: %w", path, err)
	}
	if h, err = vfs.MakeHandle(res.Mountinfo.Fhandle); err != nil {
		return h, fmt.Errorf("nfs: mount %q: the server answers a handle of %d bytes", path, len(res.Mountinfo.Fhandle))
	}
	return h, nil
}

// takesAuthSys returns an error if a server lists flavors without AUTH_SYS. An empty list is no
// statement.
func takesAuthSys(flavors []int32) error {
	if len(flavors) == 0 || slices.Contains(flavors, int32(oncrpc.AuthSysFlavor)) || slices.Contains(flavors, int32(oncrpc.AuthNone)) {
		return nil
	}
	return fmt.Errorf("the server takes none but other security flavors than sys: %v (390003 to 390005 are krb5, krb5i, krb5p): %w",
		flavors[:min(len(flavors), 8)], errors.ErrUnsupported)
}

// umnt tells the server that path is not mounted any more (procedure 3).
func (m *mountd) umnt(ctx context.Context, path string) error {
	args := mount3.Mountargs{Path: []byte(path)}
	reply, err := m.rpc.Call(ctx, mount3.MOUNTPROC3_UMNT, m.auth, &args, xdr.Void{})
	reply.Release()
	return err
}

// exports lists the server's exports (procedure 5). With an ExportsError the list has the others.
func (m *mountd) exports(ctx context.Context) ([]Export, error) {
	var res exportList
	reply, err := m.rpc.Call(ctx, mount3.MOUNTPROC3_EXPORT, m.auth, xdr.Void{}, &res)
	defer reply.Release()
	if err == nil && res.left != (ExportsError{}) {
		err = &res.left
	}
	return res.list, err
}

// exportList is a list of exports as it is received. A path or a name that is longer than its type
// allows spoils no other one; maxMountReply bounds all.
type exportList struct {
	list []Export
	left ExportsError
}

// DecodeXDR implements xdr.Unmarshaler.
func (l *exportList) DecodeXDR(d *xdr.Decoder) error {
	*l = exportList{}
	for d.Bool() {
		x := Export{Path: string(d.Opaque("exportnode.ex_dir", maxMountReply))}
		for d.Bool() {
			name := d.Opaque("groupnode.gr_name", maxMountReply)
			x.Groups = append(x.Groups, string(name[:min(len(name), mount3.MNTNAMLEN)]))
		}
		switch {
		case x.Path == "":
			l.left.Empty++
		case len(x.Path) > mount3.MNTPATHLEN:
			l.left.TooLong++
		default:
			l.list = append(l.list, x)
		}
	}
	return d.Err()
}

// ExportsError says that a server's list has exports with paths that no client can mount. They were
// left out.
type ExportsError struct {
	Empty   int // how many have no path
	TooLong int // how many have a longer path than MOUNT allows, 1024 bytes
}

// Error implements error.
func (e *ExportsError) Error() string {
	return fmt.Sprintf("the server's list has exports that cannot be mounted, and were left out: %d without a path, %d with one of more than %d bytes",
		e.Empty, e.TooLong, mount3.MNTPATHLEN)
}

// Export is a directory that a server offers.
type Export struct {
	Path   string   // as the server wrote it
	Groups []string // hosts and groups that may mount it; none means everybody
}

// Exports asks a server for its exports. It ignores o.Path. With an ExportsError the list has the
// others.
func Exports(ctx context.Context, o Options) ([]Export, error) {
	m, err := connectMountd(ctx, &o, nil)
	if err != nil {
		return nil, err
	}
	list, err := m.exports(ctx)
	return list, errors.Join(err, m.close())
}

// connectMountd finds a server's MOUNT service. The caller closes it. begin, if not nil, may send
// calls before the service is known to be there. It is called again for each port that is tried.
func connectMountd(ctx context.Context, o *Options, begin func(context.Context, *mountd)) (*mountd, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	auth, err := o.auth()
	if err != nil {
		return nil, err
	}
	m, s := &mountd{auth: auth}, mountService
	s.early = func(rpc *oncrpc.Client) {
		m.forget() // calls to the port before
		m.rpc = rpc
		if begin != nil {
			begin(ctx, m)
		}
	}
	if _, m.port, err = o.connect(ctx, &s); err != nil {
		m.forget()
		return nil, err
	}
	return m, nil
}
