package bucket

import "time"

const (
	// MaxBody bounds the body of a request, and of the answer with an object's bytes, in bytes: each is in memory.
	MaxBody = 64 << 20

	// maxConns bounds the connections; further requests wait for one.
	maxConns = 64
	// maxIdle is how many connections are kept when they are idle, and idleTime for how long.
	maxIdle  = 16
	idleTime = 90 * time.Second

	// maxTries is how often a request is sent. Then its error is returned.
	maxTries = 10
	// maxFirstTries is the same as long as the store has answered nothing: its address may be wrong.
	maxFirstTries = 3
	// maxLate is how often a request is sent whose answer of status 200 is an error for a while. Then that is the error.
	maxLate = 4
	// Between tries are pauses that double, of firstPause to maxPause and a random part less: a minute in all.
	firstPause = 200 * time.Millisecond
	maxPause   = 20 * time.Second
	// dialTime bounds how long a connection may take to be made, headTime how long an answer may
	// take to begin. Then the try has failed.
	dialTime = 15 * time.Second
	headTime = time.Minute
	// A try may take baseTime, and a second more for each slowRate bytes that it moves. Then it has failed.
	baseTime = time.Minute
	slowRate = 32 << 10
	// A try to read has failed, too, if fewer than slowBytes of the answer come in a slowTime. Other answers may
	// take baseTime: S3 keeps a connection alive with spaces while it puts an object together.
	slowTime  = 30 * time.Second
	slowBytes = 16 << 10
	// silentTime is how long a store may answer no request before that is told (Options.Silent). A request with a body has a second
	// more for each slowRate bytes.
	silentTime = 5 * time.Second
	// maxSlowTries is how often such a request is sent whose answer is too slow. Then its error is returned.
	maxSlowTries = 3

	// MaxError bounds the body of an error, in bytes, and maxShown how much of its text a message repeats.
	MaxError = 64 << 10
	maxShown = 200
	// maxList bounds the body of a page of a listing, in bytes: a thousand names of 1,024 bytes, escaped, with
	// all that S3 says of each. More is object.ErrForeign.
	maxList = 8 << 20
	// MaxEmpty bounds how many pages without a key may follow each other. More are object.ErrForeign.
	MaxEmpty = 100

	// credTime bounds how long an instance may take to answer with credentials. Then there are none.
	credTime = 5 * time.Second
	// minBucket and maxBucket bound a bucket's name, in bytes, as S3 does.
	minBucket, maxBucket = 3, 63
)
