package dirfs

// How an FS divides its descriptors. A call takes all that it may need at once, and
// so never waits for one while it has another; open files and listings have a part
// of their own, because those who hold one call again.
const (
	// perCall is what one call has open at most: two directories that it works in, one
	// that is being opened, and the object.
	perCall = 4
	// maxCalls bounds the calls at work at once. One more waits.
	maxCalls = 32
	// maxIdle bounds the directories that stay open while nobody works in them. At the
	// bound the one that was used least recently is closed.
	maxIdle = 256
	// maxLists bounds the listings that keep their descriptor between two pages. Others
	// open the directory again for each page.
	maxLists = 32
	// maxShare bounds the descriptors of one FS, whatever the limit.
	maxShare = 4096
	// minShare is what an FS needs, whatever the limit: with fewer it may fail for
	// want of descriptors.
	minShare = 8
	// reserved are left to the rest of the process: connections, records, the output.
	reserved = 16
	// enough is a limit of the process (RLIMIT_NOFILE) with which two FS, for the two ends of
	// a copy, have what they need: a command has few descriptors besides what is reserved.
	enough = 4*minShare + 2*reserved
)

// budget is the division.
type budget struct{ files, calls, idle, lists int }

// divide divides n descriptors, or, if n is 0, half of what the process has left.
func divide(n int) budget {
	if n <= 0 {
		n = (descriptorsLeft() - reserved) / 2
	}
	n = min(max(n, minShare), maxShare)
	b := budget{calls: min(max(n/16, 1), maxCalls), idle: min(n/8, maxIdle), lists: min(n/16, maxLists)}
	b.files = max(n-1-b.calls*perCall-b.idle-b.lists, 1) // and the root
	return b
}
