package mountd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/ledger"
	"github.com/nfsbox/nfsbox/nfsserver/internal/peer"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// Service is MOUNT for a table of exports. The state of each connection is a
// [*peer.Conn].
type Service struct {
	table  *export.Table
	log    ledger.Ledger // its lines are counted by path, too
	mounts mounts
}

// New returns the service; [Service.RPC] is what a server runs of it.
func New(table *export.Table, log *slog.Logger) *Service {
	return &Service{table: table, log: ledger.Ledger{Log: log}}
}

// RPC binds the procedures to their numbers, in version 3 and in version 1.
func (s *Service) RPC() []oncrpc.Service {
	v3 := make([]oncrpc.Handler, len(mount3.MOUNT_V3.Procs))
	v3[mount3.MOUNTPROC3_NULL.Number] = null
	v3[mount3.MOUNTPROC3_MNT.Number] = s.mnt
	v3[mount3.MOUNTPROC3_DUMP.Number] = s.dump
	v3[mount3.MOUNTPROC3_UMNT.Number] = s.umnt
	v3[mount3.MOUNTPROC3_UMNTALL.Number] = s.umntall
	v3[mount3.MOUNTPROC3_EXPORT.Number] = s.exports
	v1 := slices.Clone(v3)
	v1[mount3.MOUNTPROC_MNT.Number] = nil
	return []oncrpc.Service{{Program: &mount3.MOUNT_V3, Handlers: v3}, {Program: &mount3.MOUNT_V1, Handlers: v1}}
}

func null(_ context.Context, c *oncrpc.Call) error { return c.Reply(xdr.Void{}) }

func dirpath(c *oncrpc.Call) (string, error) {
	p := string(c.Args.Opaque("dirpath", mount3.MNTPATHLEN))
	return p, c.Args.Finish()
}

// mnt is procedure 1 (section 5.2.1): the handle of a directory. The path is looked up
// with the caller's rights, so a caller gets no handle of a directory that it could not
// reach.
func (s *Service) mnt(ctx context.Context, c *oncrpc.Call) error {
	dir, err := dirpath(c)
	if err != nil {
		return err
	}
	conn := c.State.(*peer.Conn)
	view, err := conn.View(c.Auth)
	if err != nil {
		return err
	}
	h, _, err := view.FS.Mount(ctx, dir)
	if err != nil && ctx.Err() != nil || errors.Is(err, vfs.ErrBusy) {
		return oncrpc.ErrDrop // MOUNT has no status for "try again": the client repeats the call
	}
	var res mount3.Mountres3
	if err != nil {
		var known bool
		res.FhsStatus, known = status(err)
		if export.Told(err) { // with the rule that has refused it
			return c.Reply(&res)
		}
		level := slog.LevelInfo
		switch {
		case !known:
			level = slog.LevelWarn
		case s.isQuestion(dir, err):
			level = slog.LevelDebug
		}
		if errors.Is(err, vfs.ErrStale) {
			err = fmt.Errorf("%w: the directory was removed or replaced; with SIGHUP what is there now is served", err)
		}
		s.log.Tell(level, "mount refused", conn.Name, dir, slog.String("path", dir),
			slog.Uint64("claimed_uid", uint64(view.Caller.UID)), slog.Any("error", err))
		return c.Reply(&res)
	}
	s.mounts.add(mount{client: conn.Client, user: conn.User, path: dir})
	s.log.Tell(slog.LevelInfo, "mounted", conn.Name, dir, append([]slog.Attr{slog.String("path", dir)}, inEffect(ctx, view, h)...)...)
	res.Mountinfo.Fhandle = h.Bytes()
	res.Mountinfo.AuthFlavors = []int32{int32(oncrpc.AuthSysFlavor)}
	return c.Reply(&res)
}

// isQuestion reports whether err only says that path, below an export, is no directory. Clients without a
// mount ask so for each file that they open, and go on with the directory above.
func (s *Service) isQuestion(p string, err error) bool {
	if !errors.Is(err, vfs.ErrNotDir) && !errors.Is(err, vfs.ErrNoEnt) {
		return false
	}
	p = path.Clean("/" + p)
	return slices.ContainsFunc(s.table.Exports(), func(e export.Export) bool {
		return strings.HasPrefix(p, strings.TrimRight(path.Clean(e.Path), "/")+"/")
	})
}

// inEffect is the user that the rules make of the caller, for the log. What its credential
// says proves nothing.
func inEffect(ctx context.Context, view *peer.View, h vfs.Handle) []slog.Attr {
	uid, ok := view.FS.User(ctx, h)
	if !ok {
		return nil
	}
	return []slog.Attr{slog.Uint64("uid", uint64(uid))}
}

// statuses are those that MNT may answer (section 5.1.2, mountstat3).
var statuses = [...]vfs.Status{
	vfs.ErrPerm, vfs.ErrNoEnt, vfs.ErrIO, vfs.ErrAccess, vfs.ErrNotDir, vfs.ErrInval, vfs.ErrNameTooLong, vfs.ErrNotSupp,
}

// status is err as MOUNT says it: the numbers are those of NFS, but fewer.
func status(err error) (mount3.Mountstat3, bool) {
	for _, st := range statuses {
		if errors.Is(err, st) {
			return mount3.Mountstat3(st), true
		}
	}
	st, ok := vfs.StatusOf(err)
	if slices.Contains(statuses[:], st) {
		return mount3.Mountstat3(st), ok
	}
	return mount3.MNT3ERR_SERVERFAULT, false
}

// Forget forgets the mounts for whose client and user, as in peer.Conn, which is true, and
// returns how many those were. which must not call the service.
func (s *Service) Forget(which func(client, user string) bool) (n int) {
	s.mounts.remove(func(m mount) bool {
		if !which(m.client, m.user) {
			return false
		}
		n++
		return true
	})
	return n
}

// dump is procedure 2 (section 5.2.2): which client has mounted what, as far as is known.
// A client that no rule knows gets an empty list.
func (s *Service) dump(ctx context.Context, c *oncrpc.Call) error {
	if err := c.Args.Finish(); err != nil {
		return err
	}
	var list mount3.Mountlist
	known, err := c.State.(*peer.Conn).Known(ctx)
	if err != nil {
		return err
	}
	if !known {
		return c.Reply(&list)
	}
	for _, m := range s.mounts.list() {
		list = append(list, mount3.Mountbody{MlHostname: []byte(m.client), MlDirectory: []byte(m.path)})
	}
	return c.Reply(&list)
}

// umnt is procedure 3 (section 5.2.3).
func (s *Service) umnt(_ context.Context, c *oncrpc.Call) error {
	dir, err := dirpath(c)
	if err != nil {
		return err
	}
	conn := c.State.(*peer.Conn)
	m := mount{client: conn.Client, user: conn.User, path: dir}
	s.mounts.remove(func(o mount) bool { return o == m })
	return c.Reply(xdr.Void{})
}

// umntall is procedure 4 (section 5.2.4).
func (s *Service) umntall(_ context.Context, c *oncrpc.Call) error {
	if err := c.Args.Finish(); err != nil {
		return err
	}
	conn := c.State.(*peer.Conn)
	s.mounts.remove(func(o mount) bool { return o.client == conn.Client && o.user == conn.User })
	return c.Reply(xdr.Void{})
}

// exports is procedure 5 (section 5.2.5), for clients that the rules of any export know;
// others get an empty list. The groups are the clients that rules match; no groups means
// all clients.
func (s *Service) exports(ctx context.Context, c *oncrpc.Call) error {
	if err := c.Args.Finish(); err != nil {
		return err
	}
	var list mount3.Exports
	known, err := c.State.(*peer.Conn).Known(ctx)
	if err != nil {
		return err
	}
	if !known {
		return c.Reply(&list)
	}
	for _, e := range s.table.Exports() {
		node := mount3.Exportnode{ExDir: []byte(e.Path)}
		for _, r := range e.Clients {
			node.ExGroups = append(node.ExGroups, mount3.Groupnode{GrName: []byte(r.Match)})
		}
		list = append(list, node)
	}
	return c.Reply(&list)
}
