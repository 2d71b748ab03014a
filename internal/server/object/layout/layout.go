package layout

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// Names in a store.
const (
	// BucketMark begins the name of a directory of objects. It is in no key.
	BucketMark = "="
	// TempMark begins every temporary name. No segment begins with a dot.
	TempMark = ".tmp-"
	// MarkerName is the file in the root that says what this is.
	MarkerName = ".nfsbox-store"
	// MaxMarker bounds what is read of it, in bytes.
	MaxMarker = 256

	markerMagic   = "nfsbox object store"
	markerVersion = 1
)

// DefaultFanout and MaxFanout are how many characters of a name choose its
// directory: two hexadecimal digits make 256 of them, and whatever keys are
// made of, there are never more than 1440 side by side.
const (
	DefaultFanout = 2
	MaxFanout     = 2
)

// ErrNoStore: the directory is no store of objects.
var ErrNoStore = errors.New("it is no store of objects: there is no " + MarkerName + " in it")

// ErrUnfit: the directory has something else in it, or a store that this program does not know.
var ErrUnfit = errors.New("it cannot be a store of objects")

// unfit is an ErrUnfit that says why.
type unfit string

func (e unfit) Error() string        { return string(e) }
func (e unfit) Is(target error) bool { return target == ErrUnfit }

// Layout says where objects are.
type Layout struct {
	// Fanout is how many leading characters of a name choose its directory: 1 to MaxFanout. It
	// is fixed when the store is made.
	Fanout int
}

// Split returns the directory of the object of key, below the root, and its name
// there: "packs/00ff" is "00ff" in "packs/=00".
func (l Layout) Split(key string) (folder, name string) {
	at := strings.LastIndexByte(key, '/') + 1
	name = key[at:]
	return key[:at] + BucketMark + l.Group(name), name
}

// Group is what of a name chooses its bucket: its beginning, so that names that
// follow upon each other in a listing do so on disk.
func (l Layout) Group(name string) string { return name[:min(l.Fanout, len(name))] }

// Bucket reports whether a directory's name is that of a bucket, and its group.
func (l Layout) Bucket(name string) (group string, ok bool) {
	group, ok = strings.CutPrefix(name, BucketMark)
	return group, ok && len(group) <= l.Fanout && IsSegment(group)
}

// IsFolder reports whether name may be that of a directory of the store.
func (l Layout) IsFolder(name string) bool {
	_, ok := l.Bucket(name)
	return ok || IsSegment(name)
}

// Base is the part of keys that all objects in a folder have in common: of
// "packs/=00" it is "packs/".
func Base(folder string) string { return folder[:strings.LastIndexByte(folder, '/')+1] }

// Last is the last part of a path.
func Last(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// Join puts a name behind a path in the store, which is "." for its root.
func Join(p, name string) string {
	if p == "." {
		return name
	}
	return p + "/" + name
}

// IsSegment reports whether name may be a segment of a key.
func IsSegment(name string) bool {
	return !strings.Contains(name, "/") && object.CheckKey(name) == nil
}

// IsTemp reports whether name is a temporary one.
func IsTemp(name string) bool { return strings.HasPrefix(name, TempMark) }

// Bare reports whether a directory that has name in it may become a store: what a try that was
// killed has left, a writer's name, and what a new file system or a file server has by itself.
func Bare(name string) bool {
	switch name {
	case MarkerName, HolderName, "lost+found", ".snapshot", ".zfs":
		return true
	}
	return IsTemp(name)
}

// NotBare is the error, an ErrUnfit, for a directory that has name in it and cannot become a store.
func NotBare(name string) error {
	return unfit(fmt.Sprintf("it is not empty, and no object store: there is %.64q in it", name))
}

// Marker is the content of the marker file: three lines, for people as well.
func (l Layout) Marker() []byte {
	return fmt.Appendf(nil, "%s\nversion %d\nfanout %d\n", markerMagic, markerVersion, l.Fanout)
}

// ParseMarker reads what Marker writes. Its errors are ErrUnfit.
func ParseMarker(b []byte) (l Layout, err error) {
	rest, ok := strings.CutPrefix(string(b), markerMagic+"\nversion ")
	if !ok {
		return l, unfit(MarkerName + " is not that of an object store")
	}
	version, rest, _ := strings.Cut(rest, "\n")
	if version != strconv.Itoa(markerVersion) {
		return l, unfit(fmt.Sprintf("%s is of version %.20q, which this program does not know", MarkerName, version))
	}
	for l.Fanout = 1; l.Fanout <= MaxFanout; l.Fanout++ {
		if string(l.Marker()) == string(b) {
			return l, nil
		}
	}
	return Layout{}, unfit(fmt.Sprintf("%s is damaged: %.40q", MarkerName, rest))
}
