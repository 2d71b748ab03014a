package scan

const (
	// DefaultTop is how many rows a list of the largest has if Options does not say.
	DefaultTop = 20

	// MaxTop bounds the rows that Options can ask for. More is an error.
	MaxTop = 1000

	// maxKeys bounds the owners, groups and extensions that are told apart, of each part of the counts. At the bound
	// the rarer half goes into "others". What is left, or comes again, may then have more than is shown. Its
	// table says how much at most.
	maxKeys = 2048

	// maxExtension bounds an extension, in bytes. What follows the last dot of a longer one counts as none.
	maxExtension = 12

	// maxNames bounds the hashes of names, of all directories that are open together, by which names are found that are
	// equal but for case: 8 MiB. At the bound the rest of a directory is left out, and such directories are counted.
	maxNames = 1 << 20

	// maxExamples is how many paths are kept for each finding about names.
	maxExamples = 3

	// maxDepths bounds the levels that the histogram of depths tells apart. Deeper ones count as the last.
	maxDepths = 64

	// maxTable bounds the rows of the table of directories. At the bound the largest stay, and the sum of the
	// others is a row.
	maxTable = 1000

	// parts is how many sets of counts there are. Directories that are listed at once have one each, as far as they
	// go round, so that they seldom wait for each other. They are added up in the end.
	parts = 16
)
