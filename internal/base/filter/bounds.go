package filter

const (
	// maxRules bounds the rules of a filter. More are an error.
	maxRules = 10000

	// maxPattern bounds a pattern, in bytes. A longer one is an error.
	maxPattern = 1024

	// maxWords bounds the patterns of all rules together, in words of 64 characters or parts of them. A word takes 2 KiB. More
	// are an error.
	maxWords = 16384

	// maxPathWords bounds those of patterns with slashes or **: each directory of a walk keeps 8 bytes for each. More
	// are an error.
	maxPathWords = 4096

	// maxLines bounds the lines of a file of rules, comments as well. More are an error.
	maxLines = 1 << 20

	// maxListed bounds the paths of a List. More are an error. A path takes 8 bytes, and its text.
	maxListed = 1 << 24

	// maxListBytes bounds the text of a List: 1 GiB. More is an error.
	maxListBytes = 1 << 30

	// maxListedPath bounds a path of a List, in bytes. A longer one is an error.
	maxListedPath = 1<<16 - 1
)
