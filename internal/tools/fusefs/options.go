package fusefs

import (
	"errors"
	"io/fs"
	"time"
)

// Options say how to mount.
type Options struct {
	Source     string   // what is mounted, as df and /proc/mounts show it
	Kernel     []string // options of the kernel: "ro", "nosuid", "noexec", ...
	AllowOther bool     // other users than the process's may use the mount
	Fixed      bool     // every call is made as the user that the file system itself runs as

	Times   Times
	Entries Entries
	NoCTO   bool // an open does not ask for attributes
	Sync    bool // every write is stable when it returns
	NoACL   bool // access control lists are not offered

	LocalPosix, LocalFlock bool // these locks are the kernel's: they hold on this host alone

	Plus Plus

	Log  func(text string) // what nobody else is told; nil: nowhere
	Rand func(p []byte)    // for exclusive creation
}

// Times are how long the kernel keeps attributes, as in nfs(5). Zero: not at all.
type Times struct {
	FileMin, FileMax, DirMin, DirMax time.Duration
}

// DefaultTimes are those of nfs(5).
var DefaultTimes = Times{3 * time.Second, 60 * time.Second, 30 * time.Second, 60 * time.Second}

// Entries says which results of look-ups the kernel keeps (nfs(5), lookupcache).
type Entries uint8

// What is kept.
const (
	EntriesAll      Entries = iota // names that are there, and that are not
	EntriesPositive                // names that are there
	EntriesNone
)

// Plus says when listings have attributes with them (READDIRPLUS).
type Plus uint8

// When they have.
const (
	PlusAuto Plus = iota // in the first page, and then if they are asked for
	PlusAlways
	PlusNever
)

// Unfinished is what a mount has not made stable.
type Unfinished struct {
	Open   int     // files that the server has not answered for in time
	Errors []error // of files whose closing nobody waited for
}

// ErrUnsupported says that this system has no FUSE that package fusefs can use.
var ErrUnsupported = errors.New("mounts need Linux")

// RefusedError says that fusermount3 does not let this user mount there, or with these options, and what to do.
type RefusedError struct {
	Text   string
	Advice string
}

// Error says what is not allowed.
func (e *RefusedError) Error() string { return e.Text }

// Is finds it under fs.ErrPermission.
func (e *RefusedError) Is(target error) bool { return target == fs.ErrPermission }
