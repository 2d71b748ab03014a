package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// Entry is what a snapshot has of an object under one of its names.
type Entry struct {
	Name    string // its bytes, as the source had them; "" for the root
	Attr    vfs.Attr
	Target  string  // of a symbolic link
	Content Content // of a regular file
	Extra   Extra
	Changed bool // it changed each time that it was read: the content may be of no single moment
	// Of is not 0 in a checkpoint, for a file that was being stored: the entry is its beginning, and Of its size.
	Of uint64

	listing listing // of a directory
}

// kept are the attributes that a snapshot has.
const kept = vfs.MaskV3&^vfs.MaskChange | vfs.MaskBtime

// text is bytes in JSON: a string if they are UTF-8, else an object with base64.
type text string

type rawText struct {
	B64 []byte `json:"b64"`
}

// MarshalJSON implements json.Marshaler.
func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(rawText{[]byte(t)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	var raw rawText
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	*t = text(raw.B64)
	return nil
}

// digest is a sum in JSON: hexadecimal digits.
type digest object.Sum

// MarshalText implements encoding.TextMarshaler.
func (d digest) MarshalText() ([]byte, error) { return []byte(object.Sum(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *digest) UnmarshalText(b []byte) error {
	sum, err := object.ParseSum(string(b))
	*d = digest(sum)
	return err
}

// moment is a time in JSON: seconds since 1970, and nanoseconds.
type moment [2]int64

func momentOf(t time.Time) *moment { return &moment{t.Unix(), int64(t.Nanosecond())} }

func (m *moment) time() (time.Time, error) {
	if m[1] < 0 || m[1] >= int64(time.Second) {
		return time.Time{}, fmt.Errorf("a time with %d nanoseconds", m[1])
	}
	return time.Unix(m[0], m[1]), nil
}

// line is an Entry as a line of the manifest. The name comes first: readers find a line by it.
type line struct {
	Name  text       `json:"name"`
	Type  vfs.Type   `json:"type"` // RFC 1813, ftype3
	Valid vfs.Mask   `json:"has"`  // which of the following are known
	Mode  uint32     `json:"mode"`
	Nlink uint32     `json:"nlink,omitempty"`
	UID   uint32     `json:"uid"`
	GID   uint32     `json:"gid"`
	Size  uint64     `json:"size"`
	Used  uint64     `json:"used,omitempty"`
	ID    uint64     `json:"id,omitempty"`
	Rdev  uint64     `json:"rdev,omitempty"`
	FSID  *[2]uint64 `json:"fsid,omitempty"`
	Atime *moment    `json:"atime,omitempty"`
	Mtime *moment    `json:"mtime,omitempty"`
	Ctime *moment    `json:"ctime,omitempty"`
	Btime *moment    `json:"btime,omitempty"`

	Target  text     `json:"target,omitempty"`
	Content *Content `json:"content,omitempty"`
	Extra   *Extra   `json:"extra,omitempty"`
	List    *listing `json:"list,omitempty"`
	Changed bool     `json:"changed,omitempty"`
	Of      uint64   `json:"of,omitempty"`
}

// encode appends e as a line.
func (e *Entry) encode(b []byte) ([]byte, error) {
	a := &e.Attr
	l := line{
		Name: text(e.Name), Type: a.Type, Valid: a.Valid & kept, Mode: a.Mode, Nlink: a.Nlink, UID: a.UID, GID: a.GID,
		Size: a.Size, Used: a.Used, ID: a.FileID, Rdev: a.Rdev, Target: text(e.Target), Changed: e.Changed, Of: e.Of,
	}
	if a.Has(vfs.MaskFSID) {
		l.FSID = &a.FSID
	}
	for mask, t := range map[vfs.Mask]struct {
		to **moment
		t  time.Time
	}{vfs.MaskAtime: {&l.Atime, a.Atime}, vfs.MaskMtime: {&l.Mtime, a.Mtime}, vfs.MaskCtime: {&l.Ctime, a.Ctime}, vfs.MaskBtime: {&l.Btime, a.Btime}} {
		if a.Has(mask) {
			*t.to = momentOf(t.t)
		}
	}
	if a.Type == vfs.TypeReg {
		l.Content = &e.Content
	}
	if a.Type == vfs.TypeDir {
		l.List = &e.listing
	}
	if !e.Extra.empty() {
		l.Extra = &e.Extra
	}
	return appendLine(b, &l)
}

// appendLine appends v as a line of JSON.
func appendLine(b []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return b, err
	}
	if len(text) >= maxLine {
		return b, fmt.Errorf("%w: its line has %d bytes", ErrTooLong, len(text))
	}
	return append(append(b, text...), '\n'), nil
}

// decodeEntry reads a line, without its end. It checks all that can be checked of it alone.
func decodeEntry(b []byte, root bool) (*Entry, error) {
	var l line
	if err := unmarshal(b, &l); err != nil {
		return nil, err
	}
	e := &Entry{Name: string(l.Name), Target: string(l.Target), Changed: l.Changed, Of: l.Of}
	if root != (l.Name == "") {
		return nil, errors.New("a name is missing, or the root has one")
	}
	if err := vfs.CheckName(e.Name); !root && (err != nil || e.Name == "..") {
		return nil, fmt.Errorf("%q is no name", e.Name)
	}
	if l.Type < vfs.TypeReg || l.Type > vfs.TypeFIFO || root && l.Type != vfs.TypeDir {
		return nil, fmt.Errorf("an object of type %d", l.Type)
	}
	if l.Of != 0 && (l.Type != vfs.TypeReg || l.Of < l.Size) {
		return nil, fmt.Errorf("%d bytes are the beginning of %d", l.Size, l.Of)
	}
	if l.Valid&^kept != 0 || l.Valid&vfs.MaskType == 0 || l.Mode > 07777 || l.Size > math.MaxInt64 || l.Used > math.MaxInt64 {
		return nil, errors.New("attributes that cannot be")
	}
	e.Attr = vfs.Attr{
		Valid: l.Valid, Type: l.Type, Mode: l.Mode, Nlink: l.Nlink, UID: l.UID, GID: l.GID, Size: l.Size, Used: l.Used,
		FileID: l.ID, Rdev: l.Rdev,
	}
	if err := e.times(&l); err != nil {
		return nil, err
	}
	return e, e.parts(&l)
}

// unmarshal reads one value, which must be all of b.
func unmarshal(b []byte, v any) error {
	if len(b) >= maxLine {
		return fmt.Errorf("a line of %d bytes", len(b))
	}
	return json.Unmarshal(b, v)
}

// times sets what the line has of times and of its file system.
func (e *Entry) times(l *line) (err error) {
	set := func(mask vfs.Mask, from *moment, to *time.Time) {
		if err != nil || !e.Attr.Has(mask) {
			return
		}
		if from == nil {
			err = errors.New("a time is missing")
			return
		}
		*to, err = from.time()
	}
	set(vfs.MaskAtime, l.Atime, &e.Attr.Atime)
	set(vfs.MaskMtime, l.Mtime, &e.Attr.Mtime)
	set(vfs.MaskCtime, l.Ctime, &e.Attr.Ctime)
	set(vfs.MaskBtime, l.Btime, &e.Attr.Btime)
	if err == nil && e.Attr.Has(vfs.MaskFSID) {
		if l.FSID == nil {
			return errors.New("a file system's id is missing")
		}
		e.Attr.FSID = *l.FSID
	}
	if err == nil && e.Attr.Has(vfs.MaskCtime) {
		e.Attr.Change = uint64(e.Attr.Ctime.UnixNano())
		e.Attr.Valid |= vfs.MaskChange
	}
	return err
}

// parts sets what the line has by its type.
func (e *Entry) parts(l *line) error {
	if l.Extra != nil {
		e.Extra = *l.Extra
	}
	if err := e.Extra.check(); err != nil {
		return err
	}
	switch e.Attr.Type {
	case vfs.TypeReg:
		if l.Content == nil {
			return errors.New("a file without content")
		}
		e.Content = *l.Content
		return e.Content.check(e.Attr.Size)
	case vfs.TypeDir:
		if l.List == nil {
			return errors.New("a directory without a list")
		}
		e.listing = *l.List
		return e.listing.check()
	case vfs.TypeSymlink:
		return CheckTarget(e.Target)
	default:
	}
	return nil
}

// CheckTarget returns an error if target cannot be that of a symbolic link: a restore could not make it.
func CheckTarget(target string) error {
	if target == "" || len(target) > vfs.MaxPath {
		return fmt.Errorf("a link to %d bytes", len(target))
	}
	if strings.IndexByte(target, 0) >= 0 {
		return errors.New("a link to a path with a NUL byte")
	}
	return nil
}

// lineName is the name of a line, without the rest of it.
func lineName(b []byte) (string, error) {
	if rest, ok := bytes.CutPrefix(b, []byte(`{"name":"`)); ok { // most names need no decoder
		for i, c := range rest {
			if c == '"' {
				return string(rest[:i]), nil
			}
			if c < ' ' || c >= utf8.RuneSelf || c == '\\' {
				break
			}
		}
	}
	// The name is the first member: a decoder of tokens stops behind it.
	d := json.NewDecoder(bytes.NewReader(b))
	for _, want := range []any{json.Delim('{'), "name"} {
		if t, err := d.Token(); err != nil || t != want {
			return "", errors.New("a line that does not begin with a name")
		}
	}
	var name text
	if err := d.Decode(&name); err != nil {
		return "", err
	}
	return string(name), nil
}
