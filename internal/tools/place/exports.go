package place

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/base/near"
	"github.com/nfsbox/nfsbox/vfs"
)

// exportsTime bounds the question for a server's exports. Without an answer the error has none.
const exportsTime = 5 * time.Second

// maxNamed is how many exports an advice names; further ones are counted.
const maxNamed = 5

// NoExport is the error of a URL whose path the server does not mount, since it lies in no export.
// It is ErrUnreachable.
type NoExport struct {
	URL     *nfsbox.URL
	arg     string
	Exports []string // the exports' paths, as the server wrote them
	LeftOut error    // exports that nobody can mount, which the list has as well; nil: none
	err     error
}

// Error implements error. The server was reached: what it exports is said in the place of its refusal.
func (e *NoExport) Error() string {
	if len(e.Exports) == 0 {
		return e.err.Error()
	}
	return fmt.Sprintf("%s: the server exports no such path: it exports %s", e.arg, e.named(e.Exports))
}

// Unwrap returns the cause.
func (e *NoExport) Unwrap() error { return e.err }

// notExported is err, the server's refusal to mount what arg names, or a NoExport.
func notExported(ctx context.Context, arg string, o Options, err error) error {
	status, _ := vfs.StatusOf(err)
	forbidden := status == vfs.ErrAccess || status == vfs.ErrPerm // as Linux says of what is not exported, too
	if !forbidden && status != vfs.ErrNoEnt && status != vfs.ErrNotDir && status != vfs.ErrInval {
		return err
	}
	u, uerr := nfsbox.ParseURL(arg)
	if uerr != nil || u.Export != "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, exportsTime)
	defer cancel()
	list, xerr := nfsbox.Exports(ctx, arg, o.Dial...)
	left, odd := errors.AsType[*nfsbox.ExportsError](xerr)
	if xerr != nil && !odd || len(list) == 0 && forbidden { // the list may be a secret, too
		return err
	}
	e := &NoExport{URL: u, arg: arg, err: err}
	if odd {
		e.LeftOut = left
	}
	for _, x := range list {
		if _, in := cutPath(u.Path, x.Path); in {
			return err // it is exported, but not to this host
		}
		e.Exports = append(e.Exports, x.Path)
	}
	return e
}

// cutPath is what follows dir in path, without a slash; ok is false if path does not lie in dir.
func cutPath(path, dir string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(strings.TrimRight(path, "/")+"/", strings.TrimRight(dir, "/")+"/")
	return strings.Trim(rest, "/"), ok
}

// Below are the exports that lie below the URL's path, each as it follows that.
func (e *NoExport) Below() (names []string) {
	for _, path := range e.Exports {
		if rest, ok := cutPath(path, e.URL.Path); ok {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// firstBelow is the URL of the first of them.
func (e *NoExport) firstBelow() string {
	return e.At(strings.TrimRight(e.URL.Path, "/") + "/" + e.Below()[0])
}

// At is the URL with another path.
func (e *NoExport) At(path string) string {
	u := *e.URL
	u.Path = path
	return u.String()
}

// Advice is what to do: the export that was meant, or those that there are.
func (e *NoExport) Advice() string {
	switch path := e.meant(); {
	case len(e.Exports) == 0 && e.LeftOut != nil:
		return e.LeftOut.Error()
	case len(e.Exports) == 0:
		return "the server exports nothing: " + fault.ExportIt
	case len(e.Below()) > 0:
		return "this is no export, and there are some below it, which nfsbox ls lists: " + e.named(e.Below()) + "; give one of them, as " + e.firstBelow()
	case path != "":
		return "did you mean " + e.At(path) + "?"
	}
	return "it lies in no export; the server has " + e.named(e.Exports)
}

func (e *NoExport) named(paths []string) string {
	text := strings.Join(paths[:min(len(paths), maxNamed)], ", ")
	if more := len(paths) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// meant is the URL's path with its beginning replaced by that of the export which is nearest to it; "" if
// all are far.
func (e *NoExport) meant() (path string) {
	asked := parts(e.URL.Path)
	least := near.Far
	for _, export := range e.Exports {
		export := parts(export)
		n := min(len(export), len(asked))
		if d := apart(asked[:n], export[:n]); d < least {
			least, path = d, "/"+strings.Join(append(export[:n:n], asked[n:]...), "/")
		}
	}
	return path
}

func parts(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(part string) bool { return part == "" })
}

// apart is how far the parts of two paths are from each other, together; near.Far if any are, or all are the
// same.
func apart(wrong, parts []string) (sum int) {
	for i := range parts {
		d := near.Distance(wrong[i], parts[i])
		if d == near.Far {
			return near.Far
		}
		sum += d
	}
	if sum == 0 {
		return near.Far
	}
	return sum
}
