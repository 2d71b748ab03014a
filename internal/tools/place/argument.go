package place

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/vfs"
)

// Meant returns what a user means by arg: HOST:/PATH and [ADDRESS]:/PATH, as mount(8) and rsync have
// them, are nfs://HOST/PATH, unless a file of this host has that very name. With a slash before the
// colon an argument is a path of this host. On Windows so is one with a drive. In the path *, [ and ? are
// patterns, as in a URL, and nothing is escaped. So is HOST:/PATH in front of "::", the store of a snapshot. Anything else is returned as it is.
func Meant(arg string) string {
	if store, _, _, ok := DivideText(arg); ok && !exists(arg) {
		if meant := Meant(store); meant != store {
			return meant + arg[len(store):]
		}
	}
	host, path, ok := remote(arg, runtime.GOOS == "windows")
	if !ok || exists(arg) {
		return arg
	}
	u := nfsbox.URL{Host: host, Path: path}
	return strings.NewReplacer("%2A", "*", "%5B", "[", "%5D", "]").Replace(u.String())
}

// remote divides HOST:/PATH. drives says that a letter is no host.
func remote(arg string, drives bool) (host, path string, ok bool) {
	if v6, rest, is := strings.Cut(arg, "]:/"); is && strings.HasPrefix(arg, "[") {
		addr, err := netip.ParseAddr(v6[1:])
		return v6[1:], "/" + rest, err == nil && addr.Is6()
	}
	host, path, ok = strings.Cut(arg, ":/")
	isName := host != "" && strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == ""
	return host, "/" + path, ok && isName && !strings.HasPrefix(path, "/") && !(drives && len(host) == 1)
}

// withPort is the URL of HOST:PORT/PATH and HOST:PORT:/PATH, which are no places, as mount(8) and rsync have no
// port there either: "" for others, and where this host has what is before the path.
func withPort(arg string) string {
	server, path, ok := strings.Cut(arg, "/")
	host, port, err := net.SplitHostPort(strings.TrimSuffix(server, ":"))
	if !ok || err != nil || host == "" || exists(server) {
		return ""
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return ""
	}
	u := nfsbox.URL{Host: host, Port: uint16(number), Path: "/" + path}
	return u.String()
}

// withScheme is the URL of nfs//HOST/PATH, which is no place: "" for others, and where this host has that.
func withScheme(arg string) string {
	rest, ok := strings.CutPrefix(arg, "nfs//")
	if !ok || rest == "" || exists("nfs") {
		return ""
	}
	return "nfs://" + rest
}

// meantHost is the URL that was meant by nfs:/HOST/PATH, which is PATH of a host called nfs: "" for others.
func meantHost(u *nfsbox.URL) string {
	host, path, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if u.Host != "nfs" || u.Port != 0 || host == "" {
		return ""
	}
	meant := nfsbox.URL{Host: host, Path: "/" + path}
	return meant.String()
}

// spelled is the path that an argument spells; of a URL, without its query.
func spelled(arg string) string {
	if !IsURL(arg) {
		return filepath.ToSlash(arg)
	}
	short, _, _ := strings.Cut(arg, "?")
	if store, _, _, ok := DivideText(arg); ok && len(store) > len(short) {
		return arg // what is behind the arguments is a path in a snapshot
	}
	return short
}

// Spelled is Text as data: in the path of a URL all bytes that cannot stand there are escaped, and what
// was escaped stays so. A path of this host is as it was typed.
func (p *Place) Spelled() string {
	if !IsURL(p.Text) || p.snap != nil {
		return p.Text
	}
	path, _, _ := strings.Cut(p.Text, "?")
	var b strings.Builder
	for _, c := range []byte(path) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"<>\^{|}`+"`", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String() + p.Text[len(path):]
}

// MeansDir reports whether arg can only mean a directory, because it ends in a slash, "." or
// "..". A link there stands for its target.
func MeansDir(arg string) bool {
	return strings.HasSuffix(spelled(arg), "/") || NamesContents(arg)
}

// NamesContents reports whether arg ends in "." or "..": as a source it means the directory's
// contents, and not the directory under its name.
func NamesContents(arg string) bool {
	last := strings.TrimRight(spelled(arg), "/")
	last = last[strings.LastIndexByte(last, '/')+1:]
	return last == "." || last == ".."
}

// ContentsOf returns the argument that means the contents of the directory arg.
func ContentsOf(arg string) string {
	if NamesContents(arg) {
		return arg
	}
	dir := spelled(arg)
	return strings.TrimSuffix(dir, "/") + "/." + arg[len(dir):]
}

// withoutEnd removes the end of a path, or of a URL without a query, that says only that it is
// a directory.
func withoutEnd(path string) string {
	for {
		short := strings.TrimSuffix(strings.TrimRight(spelled(path), "/"), "/.")
		if short == path || short == "" {
			return path
		}
		path = short
	}
}

// divided divides a URL into that of the directory and the name in it. ok is false if there is
// no name, or arg can only mean a directory.
func divided(arg string) (dir, name string, ok bool) {
	u, err := nfsbox.ParseURL(arg)
	if err != nil || MeansDir(u.Path) {
		return "", "", false
	}
	text := spelled(arg)
	dir, name = text[:strings.LastIndexByte(text, '/')+1]+arg[len(text):], path.Base(u.Path)
	d, err := nfsbox.ParseURL(dir)
	// The directory may lie above the export, and a slash in a name may be escaped.
	return dir, name, err == nil && path.Join(d.Path, name) == path.Clean(u.Path)
}

// Reached returns err as that of a place. It becomes ErrUnreachable unless the server, or this
// host, has answered: no such path, a path through something that is no directory, or no
// permission. An interruption is returned as it is.
func Reached(err error) error {
	if err == nil || answer(err) || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUsage) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// Lost reports whether err says that a server, or the store of a bucket, that was reached before does not answer any more.
func Lost(err error) bool {
	return errors.Is(err, vfs.ErrNoAnswer) || errors.Is(err, bucket.ErrSilent) ||
		errors.Is(err, context.DeadlineExceeded) // writes that were repeated in vain say so
}

// answer reports whether err is a file system's answer about a path.
func answer(err error) bool {
	if errors.Is(err, vfs.ErrOutside) {
		return true
	}
	switch s, _ := vfs.StatusOf(err); s {
	case vfs.ErrNoEnt, vfs.ErrNotDir, vfs.ErrAccess, vfs.ErrPerm, vfs.ErrNameTooLong, vfs.ErrInval: // ErrInval: too many links
		return true
	}
	return false
}
