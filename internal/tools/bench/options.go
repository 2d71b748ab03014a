package bench

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/fileapi"
)

// Bounds. What is above one is an error of Run, before anything is sent.
const (
	// MaxConcurrency bounds the callers: a goroutine each, and a buffer for
	// verbs that read.
	MaxConcurrency = 16384

	// MaxSize bounds one operation, in bytes.
	MaxSize = 64 << 20

	// maxBuffers bounds the buffers of all callers together, in bytes.
	maxBuffers = 4 << 30

	// MaxFileSize bounds a file that a verb makes, in bytes.
	MaxFileSize = 1 << 40

	// MaxDuration bounds the measured part.
	MaxDuration = 24 * time.Hour

	// MaxBatch bounds the calls that one caller makes together, and maxTogether those
	// of all callers, which have some 600 bytes each.
	MaxBatch    = 4096
	maxTogether = 1 << 20
)

const (
	// DefaultSize is how much one READ or WRITE moves, in bytes.
	DefaultSize = 1 << 20

	// defaultFiles is how much space the files that a verb makes take together,
	// in bytes, if Options.FileSize says nothing.
	defaultFiles = 256 << 20

	// warmUpShare of Options.Count is warm-up, if it is over before
	// DefaultWarmUp is.
	warmUpShare = 10

	// DefaultWarmUp is the longest warm-up.
	DefaultWarmUp = time.Second
)

// ErrUsage marks the error of Options that make no sense.
var ErrUsage = errors.New("wrong use")

// ErrUnreachable marks the error of a server, or of a place on it, that cannot be
// reached.
var ErrUnreachable = errors.New("cannot be reached")

// unreachable is the error of what cannot be reached; an interruption is no such thing.
func unreachable(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: %w: %w", what, ErrUnreachable, err)
}

// usageError is an ErrUsage that says itself what is wrong.
type usageError struct{ error }

func (e usageError) Is(target error) bool { return target == ErrUsage }
func (e usageError) Unwrap() error        { return e.error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Options say what to measure. Verb and URL are required; the zero value of
// anything else is a good one.
type Options struct {
	Verb string // one of Verbs
	URL  string // nfs://host[:port]/export/path
	// Dial are further options of the connection. Without one of them, or an
	// argument of the URL, that limits the load, Concurrency is the limit.
	Dial []nfsbox.Option

	Concurrency int           // callers at once; 0: 1
	Count       uint64        // operations; 0: the verb's default, or no limit if there is a Duration
	Duration    time.Duration // of the measured part; 0: as long as Count takes
	WarmUp      time.Duration // the longest; 0: DefaultWarmUp; negative: none

	Size     int   // bytes of one READ or WRITE, or of a page of a listing; 0: the verb's default
	FileSize int64 // bytes of each file that the verb makes; 0: what keeps all below 256 MiB
	Random   bool  // read: at random places instead of one behind the other
	Stable   bool  // write: FILE_SYNC instead of UNSTABLE and COMMIT
	NoCommit bool  // write: leave COMMIT out
	Names    bool  // list: by READDIR instead of READDIRPLUS
	Through  bool  // read, write: with read-ahead and write-behind, as applications have it
	// LocalIO is for read, write, upload and download: by the files of this host,
	// where the server hands them out, instead of by calls. localio= in the URL
	// asks for it as well.
	LocalIO bool
	Seed    uint64 // of random places, data and names; the same seed, the same run
	Batch   int    // null, getattr: calls that a caller makes together, each an operation; 0: 1

	Files   uint64 // of a dataset; 0: as many as operations
	Tag     string // of a dataset, part of its directory's name; "": DefaultTag, and for clean all
	NoSync  bool   // upload: do not wait until a file is on the disk
	InPlace bool   // upload, over NFS: write under the file's name, without a temporary one and RENAME
	API     API    // of URLs with http or https

	// ServerPID is the process whose processor time counts as the server's, on
	// Linux; 0: none.
	ServerPID int
	// ServerMetrics is the URL of an nfsbox server's metrics. They give the
	// processor time and the threads of its process, and its counts, against
	// which those of the run are held; "": none.
	ServerMetrics string

	// Each, if set, is called every second of the measured part, by one
	// goroutine.
	Each func(Sample)
	// Clock is a monotonic clock; nil is the system's. It is called
	// concurrently.
	Clock func() time.Duration
	// Rand fills p with random bytes, for names; nil is crypto/rand.
	Rand func(p []byte)
}

func (o *Options) complete(v *verb) error {
	o.Concurrency = cmp.Or(o.Concurrency, 1)
	o.Batch = cmp.Or(o.Batch, 1)
	o.WarmUp = cmp.Or(o.WarmUp, DefaultWarmUp)
	if v.cold {
		o.WarmUp = -1
	}
	if u, err := nfsbox.ParseURL(o.URL); err == nil && o.given("localio") {
		o.LocalIO = o.LocalIO || u.LocalIO != nfsbox.LocalIOOff
	}
	if o.Clock == nil {
		start := time.Now()
		o.Clock = func() time.Duration { return time.Since(start) }
	}
	if err := o.checkVerb(v); err != nil {
		return err
	}
	o.Size = cmp.Or(o.Size, v.size)
	if v == &echoVerb && !isAPI(o.URL) {
		o.Size = 0
	}
	o.count(v)
	return o.check(v)
}

// count settles how many operations there are, and of how many files.
func (o *Options) count(v *verb) {
	if v.files {
		o.Files = cmp.Or(o.Files, o.Count, v.count)
		o.Tag = cmp.Or(o.Tag, DefaultTag)
	}
	if o.Count == 0 && o.Duration == 0 {
		o.Count = v.count
		if v.files {
			o.Count = o.Files
		}
	}
	if v.once {
		o.Count = min(cmp.Or(o.Count, o.Files), o.Files)
	}
}

// checkVerb refuses what v has no use for.
func (o *Options) checkVerb(v *verb) error {
	switch {
	case !v.batch && o.Batch != 1:
		return usage("%s makes one call at a time: null and getattr have batches", v.name)
	case !v.files && o.Files != 0:
		return usage("%s has no files of a dataset", v.name)
	case !v.files && v != &cleanVerb && o.Tag != "":
		return usage("%s has no dataset, and so no tag", v.name)
	case v != &uploadVerb && (o.NoSync || o.InPlace):
		return usage("%s stores no files: how they are stored is upload's", v.name)
	case v == &cleanVerb && (o.Count != 0 || o.Duration != 0 || o.Size != 0):
		return usage("clean removes all there is: leave count, duration and size out")
	case v == &echoVerb && !isAPI(o.URL) && o.Size != 0:
		return usageError{errEcho}
	case v == &echoVerb && o.Size > fileapi.MaxMessage:
		return usage("an echo of %d bytes; up to %d are possible", o.Size, fileapi.MaxMessage)
	}
	return o.checkMeaning(v)
}

// checkMeaning refuses what would be left out of account without a word.
func (o *Options) checkMeaning(v *verb) error {
	data := v == &readVerb || v == &writeVerb
	switch {
	case o.Size != 0 && v.size == 0 && !v.files:
		return usage("%s has no sizes", v.name)
	case !data && (o.FileSize != 0 || o.Through):
		return usage("the size of files that are made, and reading and writing as applications do, are of read and write, not of %s", v.name)
	case v != &readVerb && o.Random:
		return usage("random places are read's: %s has none", v.name)
	case v != &writeVerb && (o.Stable || o.NoCommit):
		return usage("what is stable, and when, is write's: not %s's", v.name)
	case v != &listVerb && o.Names:
		return usage("listing names alone is list's: %s has none", v.name)
	}
	return nil
}

// random is n random bytes, in hexadecimal, for names.
func (o *Options) random(n int) string {
	p := make([]byte, n)
	if o.Rand != nil {
		o.Rand(p)
	} else {
		_, _ = crand.Read(p) // which never fails
	}
	return hex.EncodeToString(p)
}

func (o *Options) check(v *verb) error {
	switch {
	case o.Concurrency < 1 || o.Concurrency > MaxConcurrency:
		return usage("%d callers at once; 1 to %d are possible", o.Concurrency, MaxConcurrency)
	case o.Count > math.MaxInt64:
		return usage("%d operations; at most %d are possible", o.Count, int64(math.MaxInt64))
	case o.Duration < 0 || o.Duration > MaxDuration:
		return usage("a duration of %v; up to %v are possible", o.Duration, MaxDuration)
	case o.WarmUp > MaxDuration:
		return usage("a warm-up of %v; up to %v are possible", o.WarmUp, MaxDuration)
	case o.Batch < 1 || o.Batch > MaxBatch:
		return usage("%d calls together; 1 to %d are possible", o.Batch, MaxBatch)
	case o.Concurrency*o.Batch > maxTogether:
		return usage("%d callers with %d calls each; up to %d calls are possible together", o.Concurrency, o.Batch, maxTogether)
	case o.Files > MaxFiles:
		return usage("%d files; at most %d are possible", o.Files, int64(MaxFiles))
	case o.ServerPID < 0:
		return usage("process %d; a process number is positive", o.ServerPID)
	}
	return cmp.Or(o.checkSizes(), checkTag(o.Tag), checkURL(o, v), o.checkMetrics())
}

func (o *Options) checkSizes() error {
	switch {
	case o.Size < 0 || o.Size > MaxSize:
		return usage("a size of %d bytes; 1 to %d are possible", o.Size, MaxSize)
	case int64(o.Size)*int64(o.Concurrency) > maxBuffers:
		return usage("%d callers with %d bytes each need %d bytes of memory; up to %d are possible",
			o.Concurrency, o.Size, int64(o.Size)*int64(o.Concurrency), int64(maxBuffers))
	case o.FileSize < 0 || o.FileSize > MaxFileSize:
		return usage("files of %d bytes; up to %d are possible", o.FileSize, int64(MaxFileSize))
	case o.FileSize != 0 && o.FileSize < int64(o.Size):
		return usage("files of %d bytes are too small for operations of %d bytes", o.FileSize, o.Size)
	}
	return nil
}

// fileSize is the size of each of n files that a verb makes: a multiple of the
// size of an operation, and no more than the operations of one caller fill.
func (o *Options) fileSize(n int) int64 {
	if o.FileSize != 0 {
		return o.FileSize
	}
	blocks := max(defaultFiles/int64(n)/int64(o.Size), 1)
	if o.Count != 0 {
		blocks = min(blocks, int64((o.Count-1)/uint64(n)+1))
	}
	return blocks * int64(o.Size)
}
