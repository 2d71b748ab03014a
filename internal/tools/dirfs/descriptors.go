package dirfs

// How an FS divides its descriptors. A call takes all that it may need at once, so it never
// waits for one while it holds another. Open files and listings have budgets of their own,
// because their holders make further calls.
const (
	// perCall is the most that one call has open: two directories that it works in, one
	// that is being opened, and the object.
	perCall = 4
	// maxCalls bounds concurrent calls. At the bound further calls wait.
	maxCalls = 32
	// maxIdle bounds the directories that stay open without a call. At the bound the
	// least recently used one is closed.
	maxIdle = 256
	// maxLists bounds the listings that keep their descriptor between two pages. At the
	// bound further listings open the directory again for each page.
	maxLists = 32
	// maxShare bounds the descriptors of one FS, whatever the limit.
	maxShare = 4096
	// minShare is the least budget of an FS, whatever the limit. If the process has fewer,
	// calls may fail for want of descriptors.
	minShare = 8
	// reserved are left to the rest of the process: connections, records, the output.
	reserved = 16
	// enough is the RLIMIT_NOFILE that suffices for two FS, the two ends of a copy, in a
	// command that has few other descriptors.
	enough = 4*minShare + 2*reserved
)

// budget is the division.
type budget struct{ files, calls, idle, lists int }

// divide divides n descriptors; if n is 0, half of what the process may still open.
func divide(n int) budget {
	if n <= 0 {
		n = (descriptorsLeft() - reserved) / 2
	}
	n = min(max(n, minShare), maxShare)
	b := budget{calls: min(max(n/16, 1), maxCalls), idle: min(n/8, maxIdle), lists: min(n/16, maxLists)}
	b.files = max(n-2-b.calls*perCall-b.idle-b.lists, 1) // and the root, twice: see whole
	return b
}
