package ops

import "time"

// The bounds of this package, and what happens at each.
const (
	// maxSlowBytes is how much a call of the file API may move to be counted as slow.
	// One that moved more is not, however long it took.
	maxSlowBytes = 1 << 20

	// slowLines is how many slow calls the log tells of in one slowWindow; the others
	// are counted. slowQueue is how many wait for the log to take them; what does not
	// fit is counted, too.
	slowLines  = 20
	slowWindow = 10 * time.Second
	slowQueue  = 64

	// httpTime bounds how long a request may take to arrive. httpEnd bounds requests
	// under way at the end; then they are cut off. maxHead is the longest head of a
	// request, in bytes; a longer one is refused.
	httpTime = 10 * time.Second
	httpEnd  = time.Second
	maxHead  = 16 << 10

	// maxHTTP is how many connections each of the servers for operators has. One more
	// takes the place of one of the client that has most, or of the one that has waited
	// longest: see package crowd.
	maxHTTP = 64

	// maxScrapes is how many may read metrics at once; others are told 503.
	maxScrapes = 4

	// maxLabels is how many exports, and directories, have metrics of their own. The
	// rest is counted together, as "others".
	maxLabels = 64
)
