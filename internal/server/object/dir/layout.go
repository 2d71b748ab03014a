package dir

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

const (
	// bucketMark begins the name of a directory of objects. It is in no key.
	bucketMark = "="
	// tempMark begins every temporary name. No segment begins with a dot.
	tempMark = ".tmp-"
	// markerName is the file in the root that says what this is.
	markerName = ".nfsbox-store"
	// maxMarker bounds what is read of it.
	maxMarker = 256

	markerMagic   = "nfsbox object store"
	markerVersion = 1
)

// layout says where objects are.
type layout struct{ fanout int }

// split returns the directory of the object of key, below the root, and its name
// there: "packs/00ff" is "00ff" in "packs/=00".
func (l layout) split(key string) (folder, name string) {
	at := strings.LastIndexByte(key, '/') + 1
	name = key[at:]
	return key[:at] + bucketMark + l.group(name), name
}

// group is what of a name chooses its bucket: its beginning, so that names that
// follow upon each other in a listing do so on disk.
func (l layout) group(name string) string { return name[:min(l.fanout, len(name))] }

// base is the part of keys that all objects in a folder have in common: of
// "packs/=00" it is "packs/".
func base(folder string) string { return folder[:strings.LastIndexByte(folder, '/')+1] }

func lastOf(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// join puts a name behind a path in the store, which is "." for its root.
func join(p, name string) string {
	if p == "." {
		return name
	}
	return p + "/" + name
}

// isBucket reports whether a directory's name is that of a bucket, and its group.
func (l layout) isBucket(name string) (group string, ok bool) {
	group, ok = strings.CutPrefix(name, bucketMark)
	return group, ok && len(group) <= l.fanout && isSegment(group)
}

func isSegment(name string) bool {
	return !strings.Contains(name, "/") && object.CheckKey(name) == nil
}

// marker is the content of the marker file: three lines, for people as well.
func (l layout) marker() []byte {
	return fmt.Appendf(nil, "%s\nversion %d\nfanout %d\n", markerMagic, markerVersion, l.fanout)
}

func parseMarker(b []byte) (l layout, err error) {
	rest, ok := strings.CutPrefix(string(b), markerMagic+"\nversion ")
	if !ok {
		return l, fmt.Errorf("%s is not that of an object store", markerName)
	}
	version, rest, _ := strings.Cut(rest, "\n")
	if version != strconv.Itoa(markerVersion) {
		return l, fmt.Errorf("%s is of version %.20q, which this program does not know", markerName, version)
	}
	for l.fanout = 1; l.fanout <= MaxFanout; l.fanout++ {
		if string(l.marker()) == string(b) {
			return l, nil
		}
	}
	return layout{}, fmt.Errorf("%s is damaged: %.40q", markerName, rest)
}
