//go:build linux

package linux

import "encoding/binary"

// Dirent is struct linux_dirent64.
type Dirent struct {
	Ino  uint64
	Off  uint64
	Name []byte // with a NUL behind it
}

// direntHead is the offset of d_name in struct linux_dirent64.
const direntHead = 19

// ParseDirent reads the entry at the start of b and tells its length, 0 if it is
// malformed: file systems in user space are input as well.
func ParseDirent(b []byte) (d Dirent, n int) {
	if len(b) <= direntHead {
		return d, 0
	}
	n = int(binary.NativeEndian.Uint16(b[16:]))
	if n <= direntHead || n > len(b) {
		return d, 0
	}
	d = Dirent{Ino: binary.NativeEndian.Uint64(b), Off: binary.NativeEndian.Uint64(b[8:])}
	for i, c := range b[direntHead:n] {
		if c == '/' || c == 0 && i == 0 {
			return d, 0
		}
		if c == 0 {
			d.Name = b[direntHead : direntHead+i]
			return d, n
		}
	}
	return d, 0
}
