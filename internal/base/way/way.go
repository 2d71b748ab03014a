package way

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many symbolic links a way may have, as many as Linux follows
// (path_resolution(7)). A way with more is an error.
const maxLinks = 40

// Step is something on a way: a directory, a symbolic link, or what the path leads to.
type Step struct {
	Path string // without symbolic links before its last name
	Info fs.FileInfo
}

// Of is how a path is looked up, the root first: every symbolic link on the way, the
// directories in which its names and those of the links are looked up, and what it
// leads to. It ends where nothing is there.
func Of(path string) (way []Step, err error) {
	if !filepath.IsAbs(path) {
		here, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		path = here + string(filepath.Separator) + path
	}
	at, rest := rootOf(path)
	top, err := os.Lstat(at)
	if err != nil {
		return nil, err
	}
	way = append(way, Step{at, top})
	for links := 0; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, string(filepath.Separator))
		next := filepath.Join(at, name) // right for "..", too: at has no links
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return way, nil
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink == 0:
			at, way = next, append(way, Step{next, info})
			continue
		}
		way = append(way, Step{next, info})
		if links++; links > maxLinks {
			return nil, fmt.Errorf("%s: too many symbolic links", path)
		}
		to, err := os.Readlink(next)
		if err != nil {
			return nil, err
		}
		if filepath.IsAbs(to) {
			at, to = rootOf(to)
		}
		rest = to + string(filepath.Separator) + rest
	}
	return way, nil
}

func rootOf(path string) (root, rest string) {
	n := len(filepath.VolumeName(path)) + 1
	return path[:n], path[n:]
}
