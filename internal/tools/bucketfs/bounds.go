package bucketfs

import "github.com/nfsbox/nfsbox/internal/server/bucket"

const (
	// maxKey is how long a key can be, in bytes (S3). What would have a longer one is vfs.ErrNameTooLong.
	maxKey = 1024
	// page is how many names a listing asks for at once, the most that S3 gives.
	page = 1000
	// aheadAttrs is how many objects of a listing are asked for their attributes at once.
	aheadAttrs = 32
	// maxTable is how many keys are remembered that are too long to be handles, some 400 bytes each. The one that was used
	// longest ago gives way, and its handle is vfs.ErrStale from then on: the object can be looked up again.
	maxTable = 1 << 17
	// maxPlaces is how many places of listings that were broken off are remembered, some 2 KiB each. To go on at one that is
	// not, the listing is read from its start.
	maxPlaces = 256
	// maxNew is how many directories are remembered as made by this process, some 200 bytes each: no name has to be looked
	// for before it is made there. In others that costs two requests.
	maxNew = 1 << 14

	// maxWhole is the largest file that is put by one request, in bytes; one that is larger is put in parts.
	maxWhole = bucket.MaxBody
	// maxTarget bounds the object of a symbolic link, in bytes. A larger one is vfs.ErrInval.
	maxTarget = 4095
	// maxMemory bounds what is held in memory of files that are being put, in bytes, all together: a file waits
	// until there is room for it. The garbage of files that were put comes to as much again.
	maxMemory = 2 * maxWhole
)

const (
	// maxFile is the largest file, in bytes: S3 has 5 TiB.
	maxFile = 5 << 40
	// maxMade is the largest file that can be made, in bytes: as many parts as there can be, of the longest.
	maxMade = bucket.MaxParts * maxPart
	// maxRead is the most that one read asks for, in bytes. A larger one is divided by its caller.
	maxRead = 1 << 20
	// maxCopy is the largest object that gets other metadata where it is, in bytes (CopyObject). Of a larger one that is vfs.ErrNotSupp.
	maxCopy = 5 << 30
)
