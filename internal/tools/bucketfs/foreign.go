package bucketfs

import (
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

// foreign says of a key below the root, in the directory of the key dir, why it is no name, and what to do. holder is the key that has its
// name; "" if none has.
func (f *FS) foreign(dir, key, holder string) string {
	what, then := "the object %q is no file here (%s)", "move it to another key, or remove it, with another program for S3"
	if kindOf(key) == isDir && key != dir {
		what, then = "what begins with %q has no directory here (%s)", "move it to other keys, or remove it, with another program for S3"
	}
	full := f.root + key
	return fmt.Sprintf(what, full[:min(len(full), maxKey)], f.why(dir, key, holder)) + ": " + then
}

// why is the reason.
func (f *FS) why(dir, key, holder string) string {
	s := segmentOf(dir, key)
	name, _ := nameOf(dir, key)
	switch {
	case holder != "":
		return fmt.Sprintf("its name belongs to the object %q", f.root+holder)
	case key == dir:
		return "it has bytes, and stands for a directory"
	case s == "" && kindOf(key) == isLink:
		return "no name stands before " + linkSuffix + ", which marks links"
	case s == "":
		return "a name in it is empty"
	case s == "." || s == "..":
		return "a name in it is " + s + ", which no file has"
	case len(name) > vfs.MaxName || name == "" && len(s) > vfs.MaxName:
		return fmt.Sprintf("a name in it has more than %d bytes", vfs.MaxName)
	case strings.Contains(name, "\x00"):
		return "%00 in it is a byte that no name has"
	case strings.HasSuffix(s, linkSuffix):
		return linkSuffix + " marks links: at the end of another name its point is %2E"
	}
	return "it has control characters, or bytes that are no UTF-8, as they are: in the key of a file each is %XX"
}
