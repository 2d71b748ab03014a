package snapshot

// The bounds of the format. A reader refuses what is beyond them, as damage that names the object; a
// writer stays within them. Sizes are in bytes.
const (
	// maxPlain bounds what one object, or one range of a pack, is unpacked to: a part of the manifest, a
	// list, a table. Pieces of files have maxPiece.
	maxPlain = 8 << 20
	// maxPiece bounds a piece of a file. A longer object of a file is cut.
	maxPiece = 16 << 20
	// maxPack bounds a pack. What does not fit begins another.
	maxPack = 32 << 20
	// maxLine bounds a line of the manifest. An object that needs a longer one cannot be kept.
	maxLine = 1 << 20
	// maxRoot bounds the root object.
	maxRoot = 4 << 20
	// maxObjects bounds the parts and packs of a snapshot, so that the root names all tables.
	maxObjects = maxTables * tableObjects
	maxTables  = 4096
	// maxInline is how many pieces stand in the line of their file. More are in lists.
	maxInline = 256
	// maxLists bounds the lists of one file: with pieces of 4 MiB, about 100 TiB.
	maxLists = 2048
	// MaxHoles bounds the holes of one file. What is behind them has to be kept as zeros.
	MaxHoles = 1 << 17
	// maxInlineHoles is how many holes stand in the line of their file. More are in an object of their own.
	maxInlineHoles = 64
	// maxInlineExtra is how long lists and extended attributes may be to stand in the line.
	maxInlineExtra = 4 << 10
	// maxTags bounds the tags of a snapshot, and maxTag one of them.
	maxTags, maxTag = 64, 128
	// MaxName bounds the name of a snapshot in bytes, so that it is a segment of a key.
	MaxName = 64
)

// What a writer aims at. A reader does not rely on these.
const (
	// smallFile is the most data that goes into a pack. More gets objects of its own.
	smallFile = 256 << 10
	// wholeFile is the most data that is one object. More is cut by content.
	wholeFile = 8 << 20
	// minCut, normalCut and maxPiece are the sizes of pieces cut by content.
	minCut, normalCut = 1 << 20, 4 << 20
	// partSize is the plain size of a part of the manifest: small enough to be read for one file.
	partSize = 1 << 20
	// maxDirHeld bounds the lines of one directory in memory. Then they go to the store, sorted, as a run.
	maxDirHeld = 4 << 20
	// maxHeld bounds the lines of all open directories. Then the largest of them becomes a run.
	maxHeld = 32 << 20
	// mergeRuns is how many runs of a directory are merged at once. Each takes a part in memory.
	mergeRuns = 16
	// tableObjects is how many sums a table has.
	tableObjects = 16384
	// packsOpen is how many packs are in memory, so that one can be stored while another fills. What is packed waits
	// while both are full.
	packsOpen = 2
	// cutsOpen is how many large files are cut at once. Each takes two buffers of maxPiece.
	cutsOpen = 2
)

// The bounds of a reader's memory.
const (
	// heldBytes bounds what a snapshot keeps unpacked of what it has read. What was used last is kept.
	heldBytes = 48 << 20
	// fetchUnit and fetchUnits bound what is fetched at once: an object takes a unit for each fetchUnit of
	// its stored and plain size. More wait.
	fetchUnit  = 1 << 20
	fetchUnits = 96
	// recentEntries is how many entries are kept decoded, and maxRecent how long the line of one may be that is. The next one in its
	// place takes it.
	recentEntries = 256
	maxRecent     = 4 << 10
)
