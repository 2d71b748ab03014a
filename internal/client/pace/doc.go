// Package pace limits how many calls are under way at a server at once, and finds
// out how many that ought to be: few for a slow server, many for a fast one, and
// others when the server changes. There is one [Limiter] for a server, with a limit
// for each [Class] of calls. A caller makes its call between Enter and Leave.
//
// # Why goodput, and not the shortest round trip
//
// Limiters in the tradition of TCP Vegas take the shortest round trip for that of an
// idle server, and everything above for queueing. NFS does not obey: the same READ
// takes 0.2 ms from a cache and 8 ms from a disk, so that the shortest round trip
// says nothing about the next one. In a simulation of 16 slots with such times a
// limiter of that kind gets a quarter of what the server can do. What can be trusted
// is goodput: the work that is answered, a second. Below the knee, the number of
// calls that the server works on at once, goodput grows like the limit; above, it
// stays the same, and only the round trip grows. The knee is where the limit
// belongs.
//
// Work is counted as a constant for each call and its bytes, so that a READ of a
// megabyte weighs more than one of a page, and the mean of a class whose calls
// differ in size still means something.
//
// # Windows
//
// Single round trips say little; means of many say much. A window is the time in
// which one limit holds: at least 50 ms (25 ms while searching), four round trips,
// and 32 replies. Replies of calls that were made before it began do not count. What
// it yields is the goodput, the mean round trip, and whether the limit kept calls
// waiting. If it did not, for want of calls, nothing about the limit can be learnt,
// and it stays as it is: it does not grow while nobody uses it, and is there when
// somebody does.
//
// # States
//
// Windows are slow over a long way: four round trips for each doubling. So a limiter
// whose first replies take longer than the shortest window lets in one more call with
// each reply at first, as TCP does in its slow start: the limit doubles with each round
// trip, until a reply takes twice as long as the quickest. That is known a round trip
// late, and so half of it is where the first search begins. A class that has made no call
// when those of another have shown that the server is far begins at 16. This is the one
// thing that believes in the shortest round trip; a nearer server never gets there, and
// what was wrong about it the search puts right.
//
// Rising is where a limiter begins, at 8: the limit doubles as long as goodput
// grows by a fair share of that. Where it stops, Little's law gives the knee: the
// highest goodput times the round trip that was seen without a queue.
//
// Hovering is staying there. A trial of four windows compares a limit an eighth below
// the centre with one an eighth above. Goodput that grows by more than a tenth of
// what the limit does, the price, moves the centre up; else it moves down: of limits
// that are equally good the lowest is wanted. Where a trial changes little the limiter
// stays at the centre for a while, and the next trial goes a twentieth to either side:
// goodput that falls on both sides of the knee is not given away for looking. For a
// server with a sharp knee this comes to rest with the centre at it or a little above.
//
// Falling is what follows if two windows in a row are slower than usual by more than
// half, or if round trips are longer than they once were and nothing else explains
// it: the limit is halved as long as goodput does not suffer. Calls that are no quicker
// for that were not queueing: what they take without a queue is more than was known,
// as it is when a cache does not answer any more. Windows that are faster
// than usual by as much, and goodput that grows like the limit, lead back to rising,
// which begins with the limit of before if the server is as fast as it was then.
//
// JUKEBOX takes the limit down by a fifth at once, a time-out by half, but only once
// for all the calls that were under way; it may not grow for the next few trials.
//
// # The cap of latency, and other clients
//
// Two clients that share a server see goodput grow with their own limit for ever:
// each takes it away from the other. The price puts an end to that. It grows with the
// square of the queue, the mean round trip beyond what was once seen without one,
// and is half at eight or nine times that. Where two clients pay the same price
// for a higher limit, the one with less gains more by it, so that they come to be
// equal. It follows that a server whose goodput grows slowly over a wide range of
// limits, as a dozen disks with a queue each do, is not driven to its last few
// percent: twelve of them give four fifths of what they can, with a sixth of the
// latency of 256 calls at once. Round trips below half a millisecond are nobody's concern, and there the
// price is less than nothing.
//
// # Bounds
//
// Limits that are found lie between 2 and [MaxLimit]; bounds.go has all numbers, with
// what happens at each. The queue of those that wait has no bound of its own: it is
// as long as there are goroutines in Enter. Nothing here has a goroutine; limits
// change within Leave.
package pace
