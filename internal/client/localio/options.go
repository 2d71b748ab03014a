package localio

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nfsbox/nfsbox/internal/base/session"
	"github.com/nfsbox/nfsbox/vfs"
)

// Mode says whether files of this host are read and written without the network.
type Mode uint8

// The modes.
const (
	Off     Mode = iota // never: the caller makes no FS then
	Auto                // where possible
	Require             // always: otherwise the call fails with ErrNotLocal
	Trusted             // as Auto, and other packages may use the descriptors (vfs.HostFiler)
)

var modeNames = [...]string{Off: "off", Auto: "auto", Require: "require", Trusted: "trusted"}

// String is the mode's name in messages.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// ErrNotLocal marks a call that would have to go over the network in mode Require, and the
// reason why files are not local.
var ErrNotLocal = errors.New("not a file of this host for us")

// notLocal is ErrNotLocal with the reason, and with the server's Status if there is one.
type notLocal struct {
	why   string
	cause error // or nil
}

func (e *notLocal) Error() string { return "localio: not local: " + e.why }

func (e *notLocal) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrNotLocal}
	}
	return []error{ErrNotLocal, e.cause}
}

// Prober calls the file system's server, on the file system's connection.
type Prober interface {
	// ServerUUID returns the server's UUID (LOCALIOPROC_GETUUID). A server without one, or
	// without the procedure, is an error like any other.
	ServerUUID(ctx context.Context) ([16]byte, error)
	// OfferNonce shows the server a nonce (LOCALIOPROC_UUID_IS_LOCAL). Success
	// proves nothing.
	OfferNonce(ctx context.Context, nonce [16]byte) error
}

// Options say how an FS behaves. The zero value has mode Off: a caller that makes an FS sets a mode.
type Options struct {
	Mode Mode
	// Dirs are the directories that are searched for sockets of servers; nil is session.Dirs.
	Dirs []string
	// Caller is the user of the view that New returns, and of As(nil).
	Caller vfs.Caller
	// MaxFiles bounds the descriptors that are held at once; 0 is a quarter of what the process
	// may open, and at most 1024. The server has a bound as well.
	MaxFiles int
	// Eager asks for a descriptor at the first use of a file, even if the file is small.
	Eager bool
	// Log receives when files become local, or remote, and why; nil: nothing is logged.
	Log *slog.Logger
	// Rand fills p with random bytes, and may be called by several goroutines at
	// once; nil is crypto/rand.
	Rand func(p []byte)
}

func (o *Options) fill() {
	if o.Dirs == nil {
		o.Dirs = session.Dirs()
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = max(1, min(maxFiles, openLimit()/fileShare))
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Rand == nil {
		o.Rand = func(p []byte) { _, _ = rand.Read(p) } // crypto/rand.Read never fails
	}
}
