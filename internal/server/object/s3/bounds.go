package s3

import "github.com/nfsbox/nfsbox/internal/server/bucket"

const (
	// MaxObject bounds an object, in bytes. More is object.ErrTooLarge. A Put and a Get each hold
	// their bytes in memory.
	MaxObject = bucket.MaxBody

	// maxPrefix bounds PREFIX, in bytes, so that with the longest key the name is one of S3 (1,024 bytes).
	maxPrefix = 500
)
