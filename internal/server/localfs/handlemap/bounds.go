package handlemap

// The bounds of a map, and what happens at each.
const (
	// MaxDepth bounds how far below the root an object can be. Deeper ones are
	// vfs.ErrStale. A path of PATH_MAX bytes has at most half as many parts.
	MaxDepth = 4096

	// MaxEntries bounds the objects in a map of handles, which takes about
	// 80 bytes of memory for each. At the bound, objects that have no handle yet
	// get none: a listing goes without, any other call fails with
	// vfs.ErrServerFault, and those that are gone are looked for (Map.Sweep).
	MaxEntries = 16 << 20

	// maxRescan bounds how many entries of a directory are looked at to find an
	// object that was renamed behind our back. Beyond, it is ErrStale.
	maxRescan = 1 << 20

	// maxNames bounds the names that the map remembers of one object with many
	// hard links, or that was moved between many directories. Beyond, a new one
	// takes the place of an old one; the object stays reachable by those that are
	// remembered.
	maxNames = 16

	// scanBuffer is how many bytes of directory entries a search reads at once.
	scanBuffer = 32 << 10
)
