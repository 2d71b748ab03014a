package bench

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"net/url"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox"
)

// target is where files go: a directory of an NFS server, or of a file API. A
// target and its folders may be used concurrently.
type target interface {
	// top is the directory that the URL names.
	top() folder
	// echo sends data to the server and back, as far as its protocol can.
	echo(ctx context.Context, data []byte) error
	// counters are what the client counts.
	counters() counters
	close() error
}

// folder is a directory of a target. What is not there is fs.ErrNotExist.
type folder interface {
	// enter finds a directory, or else, with create, makes it.
	enter(ctx context.Context, name string, create bool) (folder, error)
	// upload stores a file, in place of any that has the name.
	upload(ctx context.Context, name string, data []byte) error
	// download reads a file, which must have the contents want. buf has the
	// same length, for those who need it.
	download(ctx context.Context, name string, want, buf []byte) error
	exist(ctx context.Context, name string) (bool, error)
	remove(ctx context.Context, name string, isDir bool) error
	list(ctx context.Context) iter.Seq2[entry, error]
}

// entry is what a folder holds.
type entry struct {
	name          string
	isDir, isFile bool // a link is neither
}

// errContent is a file with other bytes than upload has written.
var errContent = errors.New("the file has other contents than upload gives it with this seed and size")

// same is nil if got are the bytes that are wanted.
func same(got, want []byte) error {
	if !bytes.Equal(got, want) {
		return errContent
	}
	return nil
}

// outlast is a context that ends dropTime after ctx does, for calls that make what
// has to be removed: one that was cut off may be carried out behind the removal.
func outlast(ctx context.Context) (longer context.Context, end func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(dropTime, cancel) })
	return longer, func() { stop(); cancel() }
}

func isAPI(rawURL string) bool {
	scheme, _, _ := strings.Cut(rawURL, "://")
	return strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")
}

func reach(ctx context.Context, o *Options) (target, error) {
	if isAPI(o.URL) {
		return reachAPI(ctx, o)
	}
	return reachNFS(ctx, o)
}

// checkURL refuses what is no target of v.
func checkURL(o *Options, v *verb) error {
	if v.anywhere && isAPI(o.URL) {
		_, err := parseAPI(o)
		return err
	}
	if _, err := nfsbox.ParseURL(o.URL); err != nil {
		if isAPI(o.URL) {
			return usage("%s calls procedures of NFS, and %s is not a URL of NFS", v.name, redacted(o.URL))
		}
		return usageError{err}
	}
	if o.API != (API{}) {
		return usage("%s is a URL of NFS, and has no use for options of the file API", o.URL)
	}
	return nil
}

// redacted is a URL without its password; one of NFS has none.
func redacted(rawURL string) string {
	if !strings.Contains(rawURL, "@") {
		return rawURL
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return "what was given"
	}
	return u.Redacted()
}
