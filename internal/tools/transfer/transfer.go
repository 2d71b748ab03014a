package transfer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/base/throttle"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// MaxChunk is the size of the largest read and write, in bytes.
	MaxChunk = 1 << 20
	// MinChunk is the smallest, whatever a peer prefers.
	MinChunk = 4096
	// DefaultChunk is used where a peer states no preference.
	DefaultChunk = 256 << 10

	// DefaultWindow is how many chunks of one file are in flight at first if Options does
	// not say, and for as long as the bytes are near.
	DefaultWindow = 8
	// MaxWindow is the most chunks of one file in flight, over however far a network.
	MaxWindow = 64

	// maxChanges is how often a file is copied again because it changed
	// meanwhile. Then it is ErrChanged.
	maxChanges = 1
	// maxLookups is how often a name is looked up again because the file that had
	// it is gone. Then it is ErrChanged.
	maxLookups = 8
	// maxTempNames is how many names are tried for a temporary. Each time that a server is
	// killed between a CREATE and its answer, one is used up. After the last the file has
	// failed.
	maxTempNames = 16
	// maxLostCreates is how many of these CREATEs may end without an answer: each may take
	// as long as a call may. Then that is the error.
	maxLostCreates = 3
	// cleanupTime bounds the removal of a temporary after an error.
	cleanupTime = 10 * time.Second
)

var (
	// ErrVanished says that the source's name is gone.
	ErrVanished = errors.New("vanished before it was copied")
	// ErrChanged says that the source changed while it was being copied.
	ErrChanged = errors.New("the file changed while it was being copied")
	// ErrCount says that a peer claims to have moved more bytes than it was
	// given, or none at all.
	ErrCount = errors.New("the peer returned an impossible count")
	// ErrVerify says that what was read back is not what was written.
	ErrVerify = errors.New("the copy read back differs from what was written")
)

// Source is an object to read.
type Source struct {
	FS     vfs.FS
	Handle vfs.Handle
	// Attr are its attributes as a listing had them. Missing ones are asked for.
	Attr vfs.Attr
	// Fresh says that Attr were asked for just now: they are not asked for again before
	// the file is read.
	Fresh bool
	// Dir and Name are where the listing found it: another object may have the
	// name by now. An empty Name says that Handle alone is what is meant.
	Dir  vfs.Handle
	Name string
}

// Target is the name that an object shall have.
type Target struct {
	// FS owns its dirty bytes: a Commit or Close that succeeds makes everything stable that
	// was written before. A Client's FS does so, and a directory of this host. A raw FS,
	// whose caller has to compare verifiers, does not.
	FS   vfs.FS
	Dir  vfs.Handle
	Name string
	// Listed reports whether what is made in Dir may begin with access control lists from
	// there (Options.Listed). It may wait for an answer. nil: it does not.
	Listed func() bool
	// Tag marks the temporaries further, behind Options.Tag, which is not empty then: up to two numbers
	// in hexadecimal, each with a "-" behind it.
	Tag string
	// Part, if not nil, has the copy of a regular file go on where an earlier one ended. It belongs to
	// one call of File.
	Part *Part
}

// lists reports whether what is made in Dir may begin with access control lists.
func (t *Target) lists() bool { return t.Listed != nil && t.Listed() }

// Options say how to copy. They are shared by all copies of a job, and are not
// changed.
type Options struct {
	Pool   *bufpool.Pool
	Random io.Reader // for the names of temporaries; concurrent use
	Tag    string    // is part of those names: see IsTemp
	Chunk  int       // bytes per read and write; 0: DefaultChunk. See Chunk.
	Window int       // chunks of a file in flight; 0: DefaultWindow, up to MaxWindow of a far file
	Budget *Budget   // chunks of all files in flight; nil: no bound

	// Throttle bounds the bytes that are moved; nil: nothing does. One that is read and written counts
	// once, and so does one that is read on both sides to be compared. One that Verify reads back counts
	// again.
	Throttle *throttle.Throttle

	Owners *Owners // keep owner and group, as far as the caller may; nil: do not
	Verify bool    // read the copy back when it is stable, and compare it with what was read

	// Moved, if not nil, is called with the number of bytes that have been written. A
	// negative number takes back those of an attempt that failed.
	Moved func(n int64)

	listed, holds knownACLs // of sources, and of destinations
}

func (o *Options) chunk() uint64 {
	if o.Chunk <= 0 {
		return DefaultChunk
	}
	return uint64(min(max(o.Chunk, MinChunk), MaxChunk))
}

// paced is chunk, or less if the Throttle has it now. It changes when that does.
func (o *Options) paced() uint64 { return uint64(o.Throttle.Part(int(o.chunk()))) }

func (o *Options) window() int {
	if o.Window <= 0 {
		return DefaultWindow
	}
	return min(o.Window, MaxWindow)
}

func (o *Options) moved(n int64) {
	if o.Moved != nil && n != 0 {
		o.Moved(n)
	}
}

// Result says what has been done.
type Result struct {
	Source   vfs.Attr // of the source, as it was while it was read
	Handle   vfs.Handle
	Attr     vfs.Attr // of the copy, as far as the peer sent them
	Bytes    uint64   // the size of the file
	Resumed  uint64   // of them, those that an earlier copy had copied (Target.Part)
	Verified bool
	Kept     bool // a link or node that was there already
	Grew     bool // the source grew meanwhile: the copy has what was there at first
	Lost     Lost
	Listed   bool     // the source has access control lists that its mode does not tell
	Marked   bool     // the source has extended attributes, as far as that is known
	Left     []string // temporaries that may appear yet: of calls that were not answered
}

// Chunk returns the size of chunk that suits reading from src and writing to
// dst. One call serves a whole job.
func Chunk(ctx context.Context, src Source, dst Target) (int, error) {
	from, err := src.FS.Info(ctx, src.Handle, vfs.InfoLimits)
	if err != nil {
		return 0, fmt.Errorf("limits of the source: %w", err)
	}
	to, err := dst.FS.Info(ctx, dst.Dir, vfs.InfoLimits)
	if err != nil {
		return 0, fmt.Errorf("limits of the destination: %w", err)
	}
	n := uint32(MaxChunk)
	for _, limit := range [...]uint32{from.ReadPref, from.ReadMax, to.WritePref, to.WriteMax} {
		if limit > 0 {
			n = min(n, limit)
		}
	}
	return max(int(n), MinChunk), nil
}

// File copies a regular file. When it returns nil, dst names a complete copy,
// whose contents are stable. When it returns an error, dst names what it named
// before; only if the error Is vfs.ErrUnknownOutcome it may already name the
// complete copy.
//
// If src has a Name, the file is the one that has the name when it is opened. If
// none has, the error Is ErrVanished.
func File(ctx context.Context, src Source, dst Target, o *Options) (Result, error) {
	t := tries{src: &src, fresh: src.Fresh}
	if dst.Part != nil {
		t.was = dst.Part.Was
	}
	for {
		c := copier{src: &src, dst: &dst, o: o, first: t.first, fresh: t.fresh, left: t.left, was: t.was}
		res, err := c.copy(ctx)
		if err == nil {
			res.Resumed = c.from
			o.moved(int64(res.Bytes-c.from) - c.moved.Load()) // holes
			return res, nil
		}
		o.moved(-c.moved.Load())
		c.skipped(-int64(c.from))
		t.left, t.was = c.left, c.was
		if err := t.again(ctx, &c, err); err != nil {
			return Result{}, t.left.explain(err)
		}
	}
}

const (
	tempPrefix = ".nfsbox-"
	tempSuffix = ".tmp"
	tempRandom = 8 // bytes
)

// TempName makes the name of a temporary, which IsTemp knows by o.Tag.
func (o *Options) TempName() (string, error) { return o.tempName("") }

func (o *Options) tempName(further string) (string, error) {
	var b [tempRandom]byte
	if _, err := io.ReadFull(o.Random, b[:]); err != nil {
		return "", fmt.Errorf("name of a temporary: %w", err)
	}
	return tempPrefix + o.Tag + further + hex.EncodeToString(b[:]) + tempSuffix, nil
}

// IsTemp reports whether name is one that copies with this tag give to
// temporaries, however a Target marks them further.
func IsTemp(name, tag string) bool {
	random, ok := strings.CutPrefix(name, tempPrefix+tag)
	if !ok {
		return false
	}
	random, ok = strings.CutSuffix(random, tempSuffix)
	for range maxMarks {
		mark, rest, marked := strings.Cut(random, "-")
		if !marked || tag == "" || mark == "" || !isHex(mark) {
			break
		}
		random = rest
	}
	return ok && len(random) == 2*tempRandom && isHex(random)
}

// maxMarks is how many numbers Target.Tag has at most.
const maxMarks = 2

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// LooksTemp reports whether name is one that copies with any tag may give to temporaries.
func LooksTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix) && vfs.CheckName(name) == nil
}

// cleanup is the context in which things are put right after an error, also
// after ctx has ended.
func cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
}
