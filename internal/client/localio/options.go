package localio

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nfsbox/nfsbox/internal/client/localio/session"
	"github.com/nfsbox/nfsbox/vfs"
)

// Mode says whether files of this host are read and written past the network.
type Mode uint8

// The modes.
const (
	Off     Mode = iota // never: the caller makes no FS then
	Auto                // where it can be done
	Require             // always: what cannot be done so is an error, ErrNotLocal
	Trusted             // as Auto; and descriptors may leave this process' hands (vfs.HostFiler)
)

var modeNames = [...]string{Off: "off", Auto: "auto", Require: "require", Trusted: "trusted"}

func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// ParseMode is the mode called s.
func ParseMode(s string) (Mode, error) {
	for m, name := range modeNames {
		if s == name {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("localio: %q is not one of off, auto, require and trusted", s)
}

// ErrNotLocal marks what would have had to go over the network in mode Require,
// or why nothing else can be had.
var ErrNotLocal = errors.New("not a file of this host for us")

// notLocal is ErrNotLocal, with the reason, and with what the server would have
// said if it said so.
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

// Prober asks the server of the file system, on the connection of the file
// system.
type Prober interface {
	// ServerUUID returns the UUID of the server (LOCALIOPROC_GETUUID). That it has
	// none, or does not know the question, is an error like any other.
	ServerUUID(ctx context.Context) ([16]byte, error)
	// OfferNonce shows the server a nonce (LOCALIOPROC_UUID_IS_LOCAL). Success
	// proves nothing.
	OfferNonce(ctx context.Context, nonce [16]byte) error
}

// Options say how an FS behaves. The zero value is of mode Off: a caller that makes
// an FS names a mode.
type Options struct {
	Mode Mode
	// Dirs are the directories in which the sockets of servers are looked for; nil
	// is session.Dirs.
	Dirs []string
	// Caller is the identity of the view that New returns, and of As(nil).
	Caller vfs.Caller
	// MaxFiles bounds the descriptors of files that are held at once; 0 is a quarter
	// of what the process may open, and at most 1024. The server has a bound as
	// well.
	MaxFiles int
	// Eager asks for a descriptor at the first use of a file, even if that may well
	// be the only one and the file is small.
	Eager bool
	// Log is told when files become local, or remote, and why; nil: nobody is.
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
		o.Rand = func(p []byte) { _, _ = rand.Read(p) } // which never fails
	}
}
