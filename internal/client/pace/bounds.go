package pace

import "time"

// Bounds of the limit.
const (
	// MaxLimit is the highest limit that is found: as many calls as package
	// oncrpc has under way at once. The limit stays there. Options.Max may go
	// beyond.
	MaxLimit = 512

	// minLimit is the lowest limit that is found. A server that still refuses
	// gets two calls at a time, and the pauses of those that it refused.
	minLimit = 2

	// firstLimit is where the search begins. A single disk takes this many, and
	// doubling it six times is MaxLimit.
	firstLimit = 8

	// farLimit is where a class without calls begins, once another class has shown that
	// the server is far: by farReplies replies, none in less than searchTime. That spares a
	// round trip. With more, the first calls would be slow because all are sent at once, and
	// that looks like a queue. The first replies show a server that is slow, and not far; see
	// openQueued.
	farLimit   = 16
	farReplies = 3

	// openQueued is how many times as long as the quickest reply one takes that tells
	// of a queue, while the limit grows with each reply.
	openQueued = 2
)

// Bounds of a window.
const (
	// searchTime and hoverTime are the shortest windows while searching and while
	// hovering: many times what a timer or a scheduler may be late.
	searchTime = 25 * time.Millisecond
	hoverTime  = 50 * time.Millisecond

	// minReplies and minRounds are how many replies a window has at least: so
	// many, and so many times the limit, which is as many round trips.
	minReplies = 32
	minRounds  = 4

	// maxWindow ends a window that has waited so long for its rounds: a server
	// that is far too slow for the limit is to be found out soon.
	maxWindow = time.Second
)

// Searching.
const (
	// riseShare, times the price, is the elasticity of goodput with which a
	// doubled limit is doubled again. The trials find out the rest.
	riseShare = 2.5

	// holdShare is how much of the goodput a halved limit must keep to be halved
	// again.
	holdShare = 0.85

	// If the limit is halved, and a call still costs at least unqueued of what it did, the call
	// was not queueing. Its base is then believed to be at least baseShare of that cost. That is
	// not all of it: the call may queue behind calls of other clients, which are as many as
	// before.
	unqueued  = 0.9
	baseShare = 1.0 / 6

	// passedGain is the gain of a halved limit that shows that the server was slow for a
	// short time only: fewer calls do not get more done.
	passedGain = 1.3

	// headroom is how far above the knee a search ends.
	headroom = 1.15
)

// Hovering.
const (
	// trialWindows is the number of windows of a trial, half of them high.
	trialWindows = 4

	// spread is how far, as a share, a trial goes from the centre. Less drowns in
	// noise; more costs goodput below and latency above.
	spread = 0.125

	// fineSpread is how far a trial goes that follows one that changed little. It costs
	// less, and finds a sharp peak. But noise weighs more in it, and so it is not believed
	// when it says that goodput is steep. A limit so low that this is less than a call has
	// no fine trial.
	fineSpread = 0.05

	// damping is the part of the way to where a trial points that is gone. A move
	// that follows others of its direction is up to maxRunUp or maxRunDown times
	// as long, but never more than maxMove, a change by a quarter or so.
	damping    = 0.5
	maxRunUp   = 4
	maxRunDown = 6
	maxMove    = 0.25

	// restMove is a move of the centre, as a share, that counts as none, like a move that
	// takes back the last. The limiter then stays at the centre for minRest windows, and
	// after each further such trial for twice as many, up to maxRest. A change of the server
	// is noticed all the same. peakGain is how much more the centre must let through than
	// both sides of it to be the best limit.
	restMove = 0.03
	minRest  = 4
	maxRest  = 16
	peakGain = 1.03

	// steep is the elasticity from which on goodput grows like the limit, if the
	// price is exceeded by steepAbove as well; steepRun such trials in a row begin
	// a search upwards. At steepest no queue is to be seen, and the base is taken
	// for higher by baseCreep.
	steep      = 0.7
	steepAbove = 0.3
	steepRun   = 2
	steepest   = 0.85
	baseCreep  = 0.05

	// queueSeen is how many times its base cost a call takes when a queue is
	// suspected. Whether fewer calls do as well is then tried, by a search
	// downwards: again after minPatrol trials, then after twice as many each
	// time, up to maxPatrol, until the queue is gone.
	queueSeen = 1.5
	minPatrol = 4
	maxPatrol = 64

	// band is the factor by which two windows in a row must be off the usual to
	// be a change of the server's. The usual follows by usualShare a window, and
	// base follows a lower cost by floorShare.
	band       = 1.6
	usualShare = 0.2
	floorShare = 0.3

	// calmTrials is how many trials after a refusal may not raise the limit.
	calmTrials = 10
)

// The price of a queue: see climber.price.
const (
	leastPrice   = 0.1
	highestPrice = 0.9

	// dearQueue is how many times the base a call may queue until the price is 1:
	// the cap of latency.
	dearQueue = 12

	// shortTrip, in seconds, is a round trip that is not worth shortening.
	shortTrip = 0.001
)

const (
	// busyCut and timeoutCut are what is left of the limit after a refusal, and
	// after a call that got no reply.
	busyCut    = 0.8
	timeoutCut = 0.5

	// opWork is what a call costs a server besides its bytes, in bytes: a call
	// that moves so many counts twice as much as one that moves none.
	opWork = 32 << 10

	// freeWaiters is how many waiters without a call a class keeps. What is more
	// is garbage.
	freeWaiters = 1024
)
