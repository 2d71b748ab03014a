package memfs

import "encoding/binary"

// Restart is a power cut and what follows: unstable bytes that were not
// committed are forgotten, files that had no name are gone, nothing is locked,
// and the write verifier is another. Files that are open go on, as NFSv3 knows no opens.
func (f *FS) Restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.inodes {
		if n.nlink == 0 {
			f.drop(n)
			continue
		}
		n.locks = nil
		f.pages -= uint64(len(n.content.pages))
		if n.content.restart() {
			f.modified(n, f.now()) // caches must read it again
		}
		f.pages += uint64(len(n.content.pages))
	}
	binary.BigEndian.PutUint64(f.verf[:], binary.BigEndian.Uint64(f.verf[:])+1)
}
