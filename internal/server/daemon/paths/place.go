package paths

import "fmt"

// Place tells the directory that a path leads to from others at the same path: one that
// is mounted over it, or one that was made in its place. The zero Place is unknown, as
// everywhere but on Linux.
type Place struct {
	dev, ino, mount uint64
	born            uint64 // time of birth: numbers of inodes are used again
}

// Inode is the directory's number and birth, as a text that names it on its file system.
func (p Place) Inode() string { return fmt.Sprintf("%d %d", p.ino, p.born) }
