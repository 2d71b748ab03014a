package bucketfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/vfs"
)

// upload is one under way.
type upload struct {
	full   string // the key, from the bucket on
	id     string // that the store has given it
	number string // that its object has in its metadata
	about  string // of the file and its attributes: see about
}

// markTag begins a mark. What follows are the fields, with a space between them; the key is the last.
const markTag = "s3upload1"

// String is the mark of an upload.
func (u *upload) String() string {
	return strings.Join([]string{markTag, u.id, u.number, u.about, u.full}, " ")
}

// parseMark reads a mark, which may be anything.
func parseMark(mark string) (u upload, ok bool) {
	f := strings.SplitN(mark, " ", 5)
	if len(f) != 5 || f[0] != markTag || !bucket.CheckUpload(f[1]) || f[4] == "" || len(f[4]) > maxKey {
		return u, false
	}
	return upload{full: f[4], id: f[1], number: f[2], about: f[3]}, true
}

// about is a hash of what an upload was begun with: length, parts and metadata.
func about(m *parted, meta map[string]string) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d %d\n", m.size, m.part) // a hash takes all
	for _, name := range slices.Sorted(maps.Keys(meta)) {
		_, _ = fmt.Fprintf(h, "%s: %q\n", name, meta[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// fits reports whether a file can go on with an upload.
func (u *upload) fits(m *parted, meta map[string]string) bool {
	return u.full == m.f.root+m.key && u.about == about(m, meta)
}

// Unmake implements vfs.Maker.
func (f *FS) Unmake(ctx context.Context, mark string) error {
	u, ok := parseMark(mark)
	if !ok {
		return vfs.ErrInval
	}
	return told(f.c.AbortUpload(ctx, u.full, u.id), vfs.ErrStale)
}
