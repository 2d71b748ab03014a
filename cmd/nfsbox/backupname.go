package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
)

// backupName makes a name of a place: its host and the last parts of its path. One that is too long loses its
// beginning.
func backupName(arg string) string {
	host, _ := os.Hostname() // a name may do without
	path := sourceText(arg)
	if u, err := nfsbox.ParseURL(arg); err == nil && place.IsURL(arg) {
		host, path = u.Host, u.Path
	}
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == filepath.Separator })
	parts = parts[max(0, len(parts)-2):]
	name := validName(strings.Join(append([]string{host}, parts...), "-"))
	if len(name) > snapshot.MaxName {
		name = strings.TrimLeft(name[len(name)-snapshot.MaxName:], "-_.")
	}
	return cmp.Or(name, "backup")
}

// validName is text with what names cannot have made lower-case or '-'.
func validName(text string) string {
	b := []byte(strings.ToLower(text))
	for i, c := range b {
		if ('a' > c || c > 'z') && ('0' > c || c > '9') && c != '_' && c != '.' {
			b[i] = '-'
		}
	}
	name := string(b)
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	return strings.Trim(name, "-_.")
}

// sourceText is a place as snapshots have it: of this host its whole path, so that it is the same wherever it was typed.
func sourceText(arg string) string {
	if abs, err := filepath.Abs(arg); err == nil && !place.IsURL(arg) {
		return abs
	}
	return arg
}

// storeWithin is the path of a store below the place that is backed up; "": it is elsewhere.
func storeWithin(source, store string) string {
	if s, err := nfsbox.ParseURL(source); err == nil && place.IsURL(source) {
		t, err := nfsbox.ParseURL(store)
		if err != nil || !place.IsURL(store) || !strings.EqualFold(s.Host, t.Host) || s.Port != t.Port {
			return ""
		}
		source, store = s.Path, t.Path
	} else if place.IsURL(store) {
		return ""
	} else {
		source, store = realPath(source), realPath(store)
	}
	rel, err := filepath.Rel(source, store)
	if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return ""
	}
	return filepath.ToSlash(rel)
}

// realPath is a path without links, as far as it is there.
func realPath(path string) string {
	path = sourceText(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir, name := filepath.Split(path)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return filepath.Join(real, name)
	}
	return path
}
