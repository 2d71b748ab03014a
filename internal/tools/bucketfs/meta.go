package bucketfs

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// The fields of metadata, as rclone writes them for S3 (--metadata): the time in seconds, with up to nine digits behind a point; the
// mode in octal, with the bits of the type; owner and group as numbers.
const (
	metaMtime = "X-Amz-Meta-Mtime"
	metaMode  = "X-Amz-Meta-Mode"
	metaUID   = "X-Amz-Meta-Uid"
	metaGID   = "X-Amz-Meta-Gid"
)

// The bits of a mode that say the type.
var typeBits = [...]uint32{isFile: 0o100000, isLink: 0o120000, isDir: 0o040000}

// The mode of what has none in its metadata.
var defaultModes = [...]uint32{isFile: 0o644, isLink: 0o777, isDir: 0o755}

var types = [...]vfs.Type{isFile: vfs.TypeReg, isLink: vfs.TypeSymlink, isDir: vfs.TypeDir}

// metadata is a's fields that are valid, for an object of this kind.
func metadata(k kind, a *vfs.Attr) map[string]string {
	m := make(map[string]string, 6)
	if a.Has(vfs.MaskMtime) {
		m[metaMtime] = formatTime(a.Mtime)
	}
	if a.Has(vfs.MaskMode) {
		m[metaMode] = strconv.FormatUint(uint64(typeBits[k]|a.Mode&0o7777), 8)
	}
	if a.Has(vfs.MaskUID) {
		m[metaUID] = strconv.FormatUint(uint64(a.UID), 10)
	}
	if a.Has(vfs.MaskGID) {
		m[metaGID] = strconv.FormatUint(uint64(a.GID), 10)
	}
	return m
}

// The bits of a mode that give the rights of the owner, and of the group.
const (
	setUID = 0o4000
	setGID = 0o2000
)

// read takes into a what metadata says. What is no such field is passed over, as if it were not there. A set-id bit counts only beside the owner, or the
// group, whose rights it gives: else the object would have those of whoever copies it.
func read(h http.Header, a *vfs.Attr) {
	if t, ok := parseTime(h.Get(metaMtime)); ok {
		a.Mtime, a.Atime = t, t
	}
	if n, err := strconv.ParseUint(h.Get(metaMode), 8, 32); err == nil {
		a.Mode = uint32(n) & 0o7777
	}
	if n, err := strconv.ParseUint(h.Get(metaUID), 10, 32); err == nil {
		a.UID = uint32(n)
	} else {
		a.Mode &^= setUID
	}
	if n, err := strconv.ParseUint(h.Get(metaGID), 10, 32); err == nil {
		a.GID = uint32(n)
	} else {
		a.Mode &^= setGID
	}
}

func formatTime(t time.Time) string {
	sec, nsec, sign := t.Unix(), int64(t.Nanosecond()), ""
	if sec < 0 { // seconds are rounded down, and written towards zero
		sign, sec = "-", -sec
		if nsec > 0 {
			sec, nsec = sec-1, 1e9-nsec
		}
	}
	text := sign + strconv.FormatInt(sec, 10)
	if nsec > 0 {
		digits := strconv.FormatInt(1e9+nsec, 10)[1:]
		text += "." + strings.TrimRight(digits, "0")
	}
	return text
}

// maxSeconds bounds times from metadata, so that no arithmetic overflows: the year 9999. Others are none.
const maxSeconds = 253402300799

// parseTime reads a time: seconds with a fraction, or as in RFC 3339, which other programs write.
func parseTime(s string) (time.Time, bool) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, t.Unix() <= maxSeconds
	}
	rest, negative := strings.CutPrefix(s, "-")
	whole, fraction, dot := strings.Cut(rest, ".")
	if len(fraction) > 9 {
		fraction = fraction[:9]
	}
	sec, err := strconv.ParseUint(whole, 10, 63)
	if err != nil || sec > maxSeconds || dot && strings.Trim(fraction, "0123456789") != "" {
		return time.Time{}, false
	}
	nsec, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64) // digits alone
	if negative {
		return time.Unix(-int64(sec), -nsec), true
	}
	return time.Unix(int64(sec), nsec), true
}
