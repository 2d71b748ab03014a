package nfsbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/nfsbox/nfsbox/internal/client/localio"
	"github.com/nfsbox/nfsbox/internal/client/nfsclient"
	"github.com/nfsbox/nfsbox/vfs"
)

// LocalIO says whether files are read, written and made stable without the network, if the
// server is an nfsbox on this host.
type LocalIO uint8

// In every mode the server decides which files it hands out, and to whom. Everything but
// reading, writing and committing goes over the network.
const (
	LocalIOAuto    LocalIO = iota // where possible, otherwise over the network
	LocalIOOff                    // never
	LocalIORequire                // Dial fails where it is not possible
	// LocalIOTrusted is as auto, and the descriptors may be used outside this package: a
	// file of the FS that FS wraps (vfs.Unwrapper) is a vfs.HostFiler.
	LocalIOTrusted
)

// localIOModes are the names of the modes in URLs and on the command line.
var localIOModes = [...]string{LocalIOAuto: "auto", LocalIOOff: "off", LocalIORequire: "require", LocalIOTrusted: "trusted"}

// String is the mode's name in a URL.
func (m LocalIO) String() string {
	if int(m) < len(localIOModes) {
		return localIOModes[m]
	}
	return fmt.Sprintf("LocalIO(%d)", uint8(m))
}

// WithLocalIO sets the mode of local I/O. It is localio in the URL.
func WithLocalIO(m LocalIO) Option {
	return func(o *config) { o.localIO = m }
}

// WithLocalIODir looks for the server's socket only in dir, an absolute path, such as a directory
// that containers share. The directory must belong to root, to this process's user or to the
// server's, and no other user may write to it. It is localio-dir in the URL. "" is the default:
// /run/nfsbox, and nfsbox in $XDG_RUNTIME_DIR.
func WithLocalIODir(dir string) Option {
	return func(o *config) { o.localIODir = dir }
}

// WithEagerLocalIO asks for a descriptor at the first use of every file. Without it the first
// read or write of one up to 256 KiB goes over the network: most small files are used once, and
// a descriptor would cost a second call. It is for programs that use their small files
// repeatedly; [LocalIORequire] implies it.
func WithEagerLocalIO() Option {
	return func(o *config) { o.localIOEager = true }
}

func setLocalIO(u *URL, v string) error {
	for m, name := range localIOModes {
		if v == name {
			u.LocalIO = LocalIO(m)
			return nil
		}
	}
	return badValue(v, "auto, off, require or trusted")
}

func setLocalIODir(u *URL, v string) error {
	dir, err := url.PathUnescape(v)
	if err != nil {
		return badValue(v, "a path, with %XX for what cannot stand in a URL,")
	}
	u.LocalIODir = dir
	return checkLocalIODir(dir)
}

// checkLocalIODir refuses a path that is relative, has a NUL or is too long.
func checkLocalIODir(dir string) error {
	switch {
	case !filepath.IsAbs(dir):
		return badValue(dir, "an absolute path")
	case strings.ContainsRune(dir, 0):
		return errors.New("a NUL in the path")
	case len(dir) > vfs.MaxPath:
		return fmt.Errorf("a path of %d bytes, at most %d allowed", len(dir), vfs.MaxPath)
	}
	return nil
}

// local is the layer of local I/O; nil if that is off.
func (o *config) local(conn *nfsclient.Conn) *localio.FS {
	mode := localio.Auto
	switch o.localIO {
	case LocalIOOff:
		return nil
	case LocalIORequire:
		mode = localio.Require
	case LocalIOTrusted:
		mode = localio.Trusted
	}
	l := localio.Options{Mode: mode, Eager: o.localIOEager, Caller: o.FS.Caller, Log: o.Log, Rand: o.Rand}
	if o.localIODir != "" {
		l.Dirs = []string{o.localIODir}
	}
	return localio.New(conn.FS(), conn, l)
}

// requireLocal says why there is no local I/O, which is err, and what to do about it.
func requireLocal(ctx context.Context, conn *nfsclient.Conn, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("nfs: local I/O is required: %w", err)
	}
	return fmt.Errorf("nfs: local I/O is required: %w; %s", err, adviseLocal(ctx, conn))
}

// Advice for files that go over the network although they need not.
const (
	adviseNoLocalIO = "if the server is an nfsbox on this host, it has local I/O switched off (nfsbox serve --localio), or no directory for its socket (nfsbox serve --localio-dir)"
	adviseNoSession = "if the server is on this host, or in a container of it, have both use one directory, which its owner alone can write to: " +
		"nfsbox serve --localio-dir=DIR, and localio-dir=DIR in the URL"
	adviseNoFile = "run as the user in whose name is asked (uid= and gid= in the URL), or as root; the export must neither squash that user nor say localio = false"
)

// adviseLocal is the advice if there is no session with the server.
func adviseLocal(ctx context.Context, conn *nfsclient.Conn) string {
	if _, err := conn.ServerUUID(ctx); err != nil {
		return adviseNoLocalIO
	}
	return adviseNoSession
}

// LocalIOStats say how much was read and written without the network.
type LocalIOStats struct {
	State  string `json:"state"`            // now: "local", "remote" or "off"
	Why    string `json:"why,omitempty"`    // remote: why, once that is known; local: why the most recent remote file is not local
	Socket string `json:"socket,omitempty"` // local: the server's
	Files  int    `json:"files"`            // now: open descriptors

	Opens        uint64 `json:"opens"` // descriptors that the server has handed out
	Reads        uint64 `json:"reads"`
	Writes       uint64 `json:"writes"`
	Commits      uint64 `json:"commits"`
	BytesRead    uint64 `json:"bytes_read"`
	BytesWritten uint64 `json:"bytes_written"`
	Fallbacks    uint64 `json:"fallbacks"`  // reads, writes and commits that went over the network, the first ones of small files too
	Revoked      uint64 `json:"revoked"`    // descriptors that the server has revoked
	Handshakes   uint64 `json:"handshakes"` // sessions begun; more than one: a session was lost and begun again
}

func (c *Client) localStats() LocalIOStats {
	if c.local == nil {
		return LocalIOStats{State: "off", Why: "switched off"}
	}
	s := c.local.Stats()
	return LocalIOStats{
		State: s.State, Why: s.Why, Socket: s.Socket, Files: s.Files,
		Opens: s.Opens, Reads: s.Reads, Writes: s.Writes, Commits: s.Commits, BytesRead: s.BytesRead, BytesWritten: s.BytesWritten,
		Fallbacks: s.Fallbacks, Revoked: s.Revoked, Handshakes: s.Handshakes,
	}
}

// diagnose tries local I/O as a step of a diagnosis, and reads a byte of file if there is one. A
// failure is an error only if the mode is LocalIORequire.
func (o *config) diagnose(ctx context.Context, conn *nfsclient.Conn, file vfs.Handle, s *nfsclient.Step) (err error) {
	eager := *o // otherwise a small file would go over the network
	eager.localIOEager = true
	l := eager.local(conn)
	if l == nil {
		s.Skipped, s.Detail = true, "switched off (localio=off)"
		return nil
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	_, asked := conn.ServerUUID(ctx)
	ready := l.Ready(ctx)
	st := l.Stats()
	switch {
	case ready != nil && o.localIO == LocalIORequire:
		s.Advice = adviseLocal(ctx, conn)
		return ready
	case asked != nil: // the server may be another program
		s.Skipped, s.Detail = true, "over the network: "+st.Why
		return nil
	case st.State != "local":
		s.Detail, s.Advice = "over the network: "+st.Why, adviseNoSession
		return nil
	}
	s.Detail = "local, through " + st.Socket
	if file == (vfs.Handle{}) {
		return nil
	}
	// The descriptor may take a while to come.
	for range diagnoseReads {
		if err := readByte(ctx, l, file); err != nil {
			return err
		}
		if st = l.Stats(); st.Reads > 0 || st.Why != "" {
			break
		}
	}
	if st.Reads == 0 {
		s.Detail += "; but files are read over the network: " + cmp.Or(st.Why, "the server hands them out too slowly")
		s.Advice = adviseNoFile
	}
	return nil
}

// diagnoseReads is how often a diagnosis reads a file before it gives up local I/O. It waits a
// tenth of a second between two reads.
const diagnoseReads = 20

// readByte reads the first byte of a file.
func readByte(ctx context.Context, fs vfs.FS, file vfs.Handle) error {
	f, _, err := fs.Open(ctx, vfs.At{H: file}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return err
	}
	_, _, err = f.ReadAt(ctx, make([]byte, 1), 0, nil)
	return errors.Join(err, f.Close(ctx))
}
