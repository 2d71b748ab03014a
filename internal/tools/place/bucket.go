package place

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/tools/bucketfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// openBucket opens s3://BUCKET[/PATH][?arguments]: a file, a directory or nothing yet among the plain objects of a bucket. The directory
// that holds it need not be there. In PATH %XX is a byte of a name, as in any URL.
func openBucket(ctx context.Context, arg string, silent func(bucket.Silence)) (*Place, error) {
	at, text, err := bucket.ParseURL(arg)
	if err != nil {
		return nil, usageError{err}
	}
	names, err := namesIn(text)
	if err != nil {
		return nil, usageError{fmt.Errorf("%s: %w", arg, err)}
	}
	at.Silent = silent
	c, err := bucket.New(ctx, at)
	if err != nil {
		return nil, unreachable(ctx, arg, err)
	}
	o := bucketfs.Options{Root: names, UID: uint32(max(os.Geteuid(), 0)), GID: uint32(max(os.Getegid(), 0)), Owns: os.Geteuid() >= 0}
	last := ""
	if n := len(names); n > 0 {
		o.Root, last = names[:n-1], names[n-1]
	}
	f, err := bucketfs.New(c, o)
	if err != nil {
		c.Close()
		return nil, usageError{fmt.Errorf("%s: %w", arg, err)}
	}
	if err := f.Try(ctx); err != nil {
		return nil, errors.Join(unreachable(ctx, arg, err), f.Close())
	}
	return &Place{FS: f, Path: last, Text: arg, bucket: f}, nil
}

func unreachable(ctx context.Context, arg string, err error) error {
	if cerr := ctx.Err(); cerr != nil {
		return fmt.Errorf("%s: %w", arg, cerr)
	}
	return fmt.Errorf("%s: %w: %w", arg, ErrUnreachable, err)
}

// namesIn are the names that a URL's path leads through.
func namesIn(text string) (names []string, err error) {
	for part := range strings.SplitSeq(text, "/") {
		name, err := url.PathUnescape(part)
		switch {
		case err != nil:
			return nil, errors.New("a wrong %-escape in the path: % itself is %25")
		case name == "" || name == ".":
			continue
		case name == "..":
			return nil, errors.New("in its path \"..\" is not followed: write the path without")
		}
		if err := vfs.CheckName(name); err != nil {
			return nil, fmt.Errorf("%q is no name: %w", name, err)
		}
		names = append(names, name)
	}
	return names, nil
}

// InBucket divides the URL of a place in a bucket into what names it, and its arguments with the "?" before them. ok is false for
// any other place.
func (p *Place) InBucket() (head, args string, ok bool) {
	if p.bucket == nil {
		return "", "", false
	}
	head = spelled(p.Text)
	return head, p.Text[len(head):], true
}

// bucketBase is Base of a place in a bucket.
func (p *Place) bucketBase() string {
	if p.Path != "" {
		return path.Base(p.Path)
	}
	return ""
}
