package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/vfs"
)

// mount is a connection to the server under test, which the verbs of NFS share.
type mount struct {
	o       *Options
	client  *nfsbox.Client
	fs      vfs.FS       // what is measured
	root    vfs.Handle   // of the directory that the URL names, or that holds what it names
	target  vfs.Resolved // what the URL names
	commits atomic.Uint64
}

func dial(ctx context.Context, o *Options) (*mount, error) {
	client, err := nfsbox.Dial(ctx, o.URL, o.dial()...)
	if err != nil {
		return nil, unreachable(ctx, o.URL, err)
	}
	m := &mount{o: o, client: client, fs: client.FS()}
	switch {
	case o.Through:
	case o.LocalIO:
		m.fs = below(m.fs)
	default:
		m.fs = raw(m.fs)
	}
	if err := m.resolve(ctx); err != nil {
		return nil, errors.Join(unreachable(ctx, o.URL, err), client.Close())
	}
	return m, nil
}

// maxLoad is the highest limit that a client has; callers beyond it wait in the
// client, but for those of NULL and READDIRPLUS.
const maxLoad = 512

// dial are the options of the connection. A limit that adapts would answer
// another question than how the server does with so many callers; and what is to
// be measured over the network has nothing else going on beside it.
func (o *Options) dial() (opts []nfsbox.Option) {
	if !o.given("max-load") {
		opts = append(opts, nfsbox.WithMaxLoad(min(o.Concurrency*o.Batch, maxLoad)))
	}
	opts = append(opts, o.Dial...)
	if !o.Through {
		opts = append(opts, nfsbox.WithoutAttrCache()) // the server is to be asked
		if !o.LocalIO {
			opts = append(opts, nfsbox.WithLocalIO(nfsbox.LocalIOOff))
		}
	}
	return opts
}

func (o *Options) given(name string) bool {
	_, args, _ := strings.Cut(o.URL, "?")
	for arg := range strings.SplitSeq(args, "&") {
		if strings.HasPrefix(arg, name+"=") {
			return true
		}
	}
	return false
}

// below is the file system below write-behind and read-ahead.
func below(f vfs.FS) vfs.FS {
	for range 2 {
		if w, ok := f.(vfs.Unwrapper); ok {
			if inner, ok := w.Unwrap().(vfs.FS); ok {
				f = inner
			}
		}
	}
	return f
}

func (m *mount) resolve(ctx context.Context) (err error) {
	if m.root, _, err = m.fs.Root(ctx); err != nil {
		return err
	}
	m.target, err = vfs.Resolve(ctx, vfs.Inside(m.fs), m.root, m.client.Target(), true)
	if errors.Is(err, vfs.ErrOutside) {
		return fmt.Errorf("%w, which is the directory that it is in: name what it leads to", err)
	}
	if err != nil {
		return err
	}
	if m.target.Attr, err = m.fs.GetAttr(ctx, m.target.Handle, vfs.MaskV3); err != nil {
		return err
	}
	// The client asks for the limits once; not in measured time.
	_, err = m.fs.Info(ctx, m.root, vfs.InfoLimits)
	return err
}

// raw is the file system below all wrappers: one call of it is one procedure.
func raw(f vfs.FS) vfs.FS {
	for {
		inner := below(f)
		if inner == f {
			return f
		}
		f = inner
	}
}

func (m *mount) counters() counters {
	s := m.client.Stats()
	calls := make(map[string]uint64, len(s.Procs))
	for i := range s.Procs {
		calls[s.Procs[i].Name] = s.Procs[i].Calls
	}
	return counters{
		calls: calls,
		rpcs:  s.RPCs, retransmits: s.Retransmits, timeouts: s.Timeouts, reconnects: s.Reconnects,
		bytesIn: s.BytesIn, bytesOut: s.BytesOut, commits: m.commits.Load(), connections: s.Connections, load: s.Load,
	}
}

func (m *mount) end(context.Context) error { return m.client.Close() }
