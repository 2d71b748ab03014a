package top

import "time"

// The bounds of this package, and what happens at each.
const (
	// maxFrame is the longest Frame that is read, in bytes; a longer one is an error. A
	// full one has about 300 KiB.
	maxFrame = 4 << 20

	// maxPoints is how many points a Feed keeps; at the bound the oldest are dropped.
	maxPoints = 600

	// askTime is how long a server may take to answer.
	askTime = 10 * time.Second

	// minPause and maxPause bound the time from one Frame to the next, whatever the server
	// or the user asks for. lostPause is the time after a failure.
	minPause  = 250 * time.Millisecond
	maxPause  = time.Minute
	lostPause = 3 * time.Second

	// minWidth and maxWidth bound the width that is drawn. A narrower screen gets lines of
	// minWidth, whose end is not visible.
	minWidth = 20
	maxWidth = 200

	// maxName is how many columns a name may take.
	maxName = 60

	// maxRunes is how many characters of a name are looked at: marks that are set on others
	// take no column.
	maxRunes = 2 * maxName
)
