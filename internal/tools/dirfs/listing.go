package dirfs

import "sync"

// listing remembers, by device, which file systems name a file's access control list among its extended attributes
// (listxattr(2)).
type listing struct {
	mu   sync.Mutex
	devs map[uint64]bool
}

// maxListing bounds the file systems that are remembered. Further ones are asked what they are each time.
const maxListing = 64
