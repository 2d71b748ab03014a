package paths

import "path/filepath"

// mounted is a mount of this host.
type mounted struct {
	id, parent uint64
	volume     string // names its file system
	root       string // the directory of the file system that it shows
	point      string // the path on this host at which it shows that
}

// mounts are those of this host by their numbers; none if they are unknown.
type mounts map[uint64]mounted

// spot is a directory of a file system, whichever mounts show it.
type spot struct{ volume, path string }

// spot is what the mount shows as dir, a path without symbolic links. ok is false if the
// mount is unknown, or dir is not below it.
func (m mounts) spot(mount uint64, dir string) (at spot, ok bool) {
	x, ok := m[mount]
	if !ok {
		return spot{}, false
	}
	rest, ok := below(x.point, dir)
	return spot{x.volume, filepath.Join(x.root, rest)}, ok
}

// below is the path relative to dir; ok says whether it is dir or below it.
func below(dir, path string) (rest string, ok bool) {
	rest, err := filepath.Rel(dir, path)
	return rest, err == nil && filepath.IsLocal(rest)
}
