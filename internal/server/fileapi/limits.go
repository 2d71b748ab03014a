package fileapi

import "time"

// The fixed bounds of the API. The others are in Limits.
const (
	// MaxData bounds the bytes of a file in one message: all that Get and Put move,
	// and a part of an upload. A longer part or Put is resource_exhausted, and so is
	// a Get of more, whose error names Download.
	MaxData = 1 << 20
	// maxMessage bounds a message as it comes in: MaxData in base64, and a path.
	// A longer one is resource_exhausted.
	maxMessage = MaxData/3*4 + 64<<10
	// chunk is how much of a file one message of a download carries.
	chunk = 128 << 10
	// maxPage bounds the entries of one page of a listing, and pageBytes the bytes of
	// the file system's page that they are read from. A client that asks for a larger
	// page gets this one.
	maxPage   = 1000
	pageBytes = 64 << 10
	// maxEcho bounds what Echo echoes; more is resource_exhausted.
	maxEcho = 64 << 10
	// maxHeader bounds the header of a request; more is answered with HTTP's 431.
	maxHeader = 16 << 10
	// headerTime is the timeout of a request's header, and keepAlive that of a
	// connection without a request. Then the connection is closed.
	headerTime = 10 * time.Second
	keepAlive  = 2 * time.Minute
	// streamsPerConn bounds the calls of one connection over HTTP/2. At the bound the
	// client waits, as HTTP/2 has it do.
	streamsPerConn = 1000
	// streamWindow and connWindow bound what HTTP/2 receives before a handler reads it.
	// At the bound the client waits.
	streamWindow = 256 << 10
	connWindow   = 1 << 20
	// cleanupTime is the timeout of a temporary's removal after its upload has failed,
	// and of the syncs of directories when the ledger is written anew. What is not done
	// by then is left to the sweep of the next start.
	cleanupTime = 10 * time.Second
	// drainIdle stands in for Limits.Idle once the server is shutting down, if that is longer: a
	// client that does nothing must not hold up the end. It is also how long the last
	// connections stay open when no call is in progress any more: for an answer on its way, or
	// the rest of a request's header. Then they are closed.
	drainIdle = 3 * time.Second
	// deniedTime is how long the rest of a request that is not admitted is read, if
	// Limits.Idle is longer: until its client has the answer. Then its connection is closed.
	deniedTime = 3 * time.Second
	// maxSearchPatterns bounds the patterns of a search, and searchProgram what they are compiled to, in instructions, of
	// which a character is one and a set more. More are invalid_argument.
	maxSearchPatterns = 1000
	searchProgram     = 4000
	// maxSearchRules bounds the rules of a search; more are invalid_argument. In memory one has searchRuleWord bytes for
	// 64 characters or a part of them.
	maxSearchRules = 100
	searchRuleWord = 2 << 10
	// searchLine is the longest line that is searched. A file with a longer one is reported as a failure, and its other
	// lines are searched.
	searchLine = 256 << 10
	// searchWork bounds what a cancelled search still does, which looks up at the end of a line: the bytes of a line times
	// the instructions of the patterns, at about 10 ns each. A line beyond it is left out as one beyond searchLine is.
	searchWork = 8 << 20
	// searchShown is how much is sent of a line if the request does not say, and maxSearchShown the most: to ask for more
	// is invalid_argument.
	searchShown    = 16 << 10
	maxSearchShown = 128 << 10
	// maxSearchContext bounds the lines before, and after, another. More are invalid_argument.
	maxSearchContext = 100
	// searchBatch is how many bytes of lines are sent in one message, and searchLineCost what a line counts beside its
	// text. What has waited for searchDelay is sent with fewer.
	searchBatch    = 32 << 10
	searchLineCost = 64
	searchDelay    = 100 * time.Millisecond
	// searchSilence is how long a search sends nothing: then it sends a message of progress, which also finds out
	// whether its client is still there.
	searchSilence = 5 * time.Second
	// searchMemory is what a search takes at most beside its listings and rules: twice the line in the lines' buffer,
	// which doubles as it grows, a copy in lower case, one for the expressions, the expressions, and a message.
	searchMemory = 4 << 20
	// searchDepth bounds how deep a search goes, in directories. What lies deeper is reported as a failure.
	searchDepth = 128
	// searchPage is how many entries of a directory are in memory, for each of the directories above it as well, and
	// searchEntry what one takes, without its name.
	searchPage  = 256
	searchEntry = 512
	// maxTries bounds how many names are tried for a temporary. If all are taken, that
	// is vfs.ErrExist.
	maxTries = 8
)

// Limits bound what clients can make the server hold. The zero value of each is
// its default.
type Limits struct {
	// Calls bounds the calls in progress, and CallsPerClient those of one identity,
	// wherever it calls from. An identity that has as many as are free gets no more
	// either. At a bound a call is resource_exhausted at once: there is no queue. 8192
	// and 4096.
	Calls, CallsPerClient int
	// Memory bounds the bytes of messages that calls in progress hold, and
	// MemoryPerClient those of one identity. An identity that has as much as is free
	// gets no more either. At a bound a call is resource_exhausted. 512 MiB and 256 MiB.
	Memory, MemoryPerClient int64
	// Conns bounds the connections. At the bound a new one displaces one of the client
	// with the most, or one on which no call is in progress, or is closed: see package
	// crowd. 16384.
	Conns int
	// FileSize bounds what one upload may carry; more is out_of_range. 1 TiB.
	FileSize uint64
	// Searches bounds the searches in progress, and SearchesPerClient those of one identity, which gets no more when it
	// has as many as are free, either. One more is resource_exhausted at once. 4 and 2.
	Searches, SearchesPerClient int
	// SearchBytes bounds what one search reads of files, and SearchEntries the entries of directories that it lists.
	// There it ends, and says so in its trailer. 1 TiB and 100 million.
	SearchBytes, SearchEntries uint64
	// Idle is how long a call waits for its client to send the next 4 KiB (progress),
	// or to receive the next 64 KiB (piece). Then it is deadline_exceeded. 30 s; during a
	// Shutdown no more than 3 s.
	Idle time.Duration
	// Total is the timeout of a whole call. Then it is deadline_exceeded. 24 h.
	Total time.Duration
}

func (l *Limits) fill() {
	orDefault(&l.Calls, 8192)
	orDefault(&l.CallsPerClient, 4096)
	orDefault(&l.Memory, 512<<20)
	orDefault(&l.MemoryPerClient, 256<<20)
	orDefault(&l.Conns, 16384)
	orDefault(&l.FileSize, 1<<40)
	orDefault(&l.Searches, 4)
	orDefault(&l.SearchesPerClient, 2)
	orDefault(&l.SearchBytes, 1<<40)
	orDefault(&l.SearchEntries, 100_000_000)
	orDefault(&l.Idle, 30*time.Second)
	orDefault(&l.Total, 24*time.Hour)
}

func orDefault[T int | int64 | uint64 | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}
