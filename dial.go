package nfsbox

import (
	"context"
	"errors"
	"math"
	"os"
	"sync"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient"
	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/vfs"
)

// nobody is the caller where the system has no user numbers, as in libnfs.
const nobody = 65534

// Dial mounts what the URL names, a directory or something in one, and returns
// the client. The directory must exist. ctx bounds Dial itself, not the client.
func Dial(ctx context.Context, rawURL string, opts ...Option) (*Client, error) {
	o, err := options(rawURL, opts)
	if err != nil {
		return nil, err
	}
	st, err := o.openCache(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := nfsclient.Mount(ctx, o.Options)
	if err != nil {
		if st != nil {
			err = errors.Join(err, st.Close())
		}
		return nil, err
	}
	c := &Client{conn: conn, local: o.local(conn), pace: o.FS.Pace}
	c.compose(o, st)
	c.closeFS = sync.OnceValue(c.fs.Close)
	c.watchStop(o.stop)
	if o.localIO == LocalIORequire {
		if err := c.local.Ready(ctx); err != nil {
			return nil, errors.Join(requireLocal(ctx, conn, err), c.Close())
		}
	}
	return c, nil
}

// Export is a directory that a server offers to its clients.
type Export struct {
	Path   string   // as the server wrote it
	Groups []string // hosts and groups of hosts that may mount it; none: everybody
}

// ExportsError says that a server's list has exports that nobody can mount, without a path or with one
// that is longer than MOUNT allows (RFC 1813, appendix I: 1024 bytes).
type ExportsError = nfsclient.ExportsError

// Exports lists what the URL's server offers. The URL's path is not looked at. With an [*ExportsError]
// the list is good: it has the others.
func Exports(ctx context.Context, rawURL string, opts ...Option) ([]Export, error) {
	o, err := options(rawURL, opts)
	if err != nil {
		return nil, err
	}
	list, err := nfsclient.Exports(ctx, o.Options)
	exports := make([]Export, len(list))
	for i, e := range list {
		exports[i] = Export(e)
	}
	return exports, err
}

func options(rawURL string, opts []Option) (*config, error) {
	u, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	o := &config{maxLoad: u.MaxLoad, debug: u.Debug > 0, localIO: u.LocalIO, localIODir: u.LocalIODir,
		attrs: u.AttrCached, attrTimes: u.AttrTimes, lookups: u.LookupCache, cached: u.Cached, cacheDir: u.CacheDir, cacheMark: u.CacheMark, Options: nfsclient.Options{
			Host:       u.Host,
			Path:       u.Path,
			Export:     u.Export,
			Version:    u.Version,
			Port:       u.Port,
			NFSPort:    u.NFSPort,
			MountPort:  u.MountPort,
			LockPort:   u.LockPort,
			SourcePort: nfsclient.SourcePort(u.SourcePort),
			Interface:  u.Interface,
			SynCount:   u.SynCount,
			Timeout:    u.Timeout,
			Conns:      u.Connections,
			FS: v3.Options{
				Caller:   caller(u),
				ReadMax:  u.ReadSize,
				WriteMax: u.WriteSize,
				DirCount: u.DirCount,
				MaxCount: u.MaxCount,
				NoPlus:   u.NoReaddirplus,
				Hard:     u.Patience == PatienceHard,
				SoftErr:  u.Patience == PatienceSoftErr,
				ReadOnly: u.ReadOnly,
			},
		}}
	o.patience(u)
	if u.ReadAhead != nil {
		WithReadAhead(int64(*u.ReadAhead))(o)
	}
	for _, opt := range opts {
		opt(o)
	}
	return o, o.complete()
}

// patience takes over how often is tried what failed. In the options 0 is the
// default and a negative number is none.
func (o *config) patience(u *URL) {
	if u.Retries != nil {
		if o.Retries = *u.Retries; o.Retries == 0 {
			o.Retries = -1
		}
	}
	if u.Reconnect != nil {
		switch o.DialTries = *u.Reconnect; o.DialTries {
		case -1:
			o.DialTries = math.MaxInt
		case 0:
			o.DialTries, o.DialOnce = 1, true
		}
	}
}

// caller is who is asking: the process, but for what the URL says. Groups are
// the process's own, and only if the user is.
func caller(u *URL) vfs.Caller {
	c := vfs.Caller{UID: id(os.Getuid()), GID: id(os.Getgid())}
	if u.UID == nil && u.GID == nil {
		if groups, err := os.Getgroups(); err == nil { // a system without groups has none to send
			for _, g := range groups {
				c.Groups = append(c.Groups, id(g))
			}
		}
	}
	if u.UID != nil {
		c.UID = *u.UID
	}
	if u.GID != nil {
		c.GID = *u.GID
	}
	return c
}

func id(n int) uint32 {
	if n < 0 {
		return nobody
	}
	return uint32(n)
}
