// Package pace limits how many calls are in flight to a server, and finds out how many
// that should be: few for a slow server, many for a fast one, and others when the server
// changes. A server has one [Limiter], which has a limit for each [Class] of calls. A caller
// makes its call between Enter and Leave.
//
// # Why goodput, and not the shortest round trip
//
// Limiters in the tradition of TCP Vegas take the shortest round trip for that of an idle
// server, and everything above for queueing. With NFS that fails: the same READ takes
// 0.2 ms from a cache and 8 ms from a disk. The shortest round trip says nothing about the
// next one. In a simulation of 16 slots with such times a limiter of that kind gets a
// quarter of what the server can do. Goodput, the work that is answered a second, can be
// trusted. It grows like the limit up to the knee, the number of calls that the server works
// on at once. Above the knee it stays the same, and only the round trip grows. The limit
// belongs at the knee.
//
// Work is a constant for each call, and its bytes. So a READ of a megabyte weighs more than
// one of a page, and a mean over calls of different sizes still means something.
//
// # Windows
//
// Single round trips say little; means of many say much. A window is the time in which one
// limit holds: at least 50 ms (25 ms while searching), four round trips, and 32 replies.
// Replies of calls that began before it do not count. It yields the goodput, the mean round
// trip, and whether the limit kept calls waiting. If calls were too few for that, the window
// says nothing about the limit, which stays. It does not grow while it is not used, and is
// there when calls come.
//
// # States
//
// Windows are slow over a long way: each doubling takes four round trips. If the first replies take
// longer than the shortest window, each reply lets in one more call at first, as in the slow start
// of TCP. The limit doubles with each round trip, until a reply takes twice as long as the
// quickest. That shows a round trip late, and so the first search begins at half of it. A class
// without calls begins at 16 when those of another have shown that the server is far. Only this
// start relies on the shortest round trip. A nearer server never gets there, and the search
// corrects what was wrong about it.
//
// Rising is how a limiter begins, at 8: the limit doubles as long as goodput grows by a fair
// share of that. Where it stops, Little's law gives the knee: the highest goodput times the
// round trip that was seen without a queue.
//
// Hovering is staying there. A trial of four windows compares a limit an eighth below the
// centre with one an eighth above. If goodput grows by more than a tenth of what the limit
// does, the price, the centre moves up, else down: of equally good limits the lowest is
// wanted. After a trial that changed little the limiter stays at the centre for a while. The
// next trial goes a twentieth to either side, as goodput falls on both sides of the knee and
// looking costs some. For a server with a sharp knee the centre comes to rest at the knee or
// a little above.
//
// Falling follows two windows in a row that are slower than usual by more than half. It
// also follows if round trips are longer than they once were and nothing else explains it.
// The limit is halved as long as goodput does not suffer. If calls get no quicker by that,
// they were not queueing: without a queue they take longer than was known, as when a cache
// does not answer any more. Windows that are faster than usual by as much, or goodput that
// grows like the limit, lead back to rising. If the server is as fast as before it was slow,
// rising begins with the limit of then.
//
// JUKEBOX lowers the limit by a fifth at once, a time-out by half, but only once for all
// calls that were in flight. The limit may not grow for the next few trials.
//
// # The cap of latency, and other clients
//
// Two clients that share a server see goodput grow with their own limit for ever: each takes it
// away from the other. The price ends that. It grows with the square of the queue: of the mean
// round trip beyond what was once seen without one. At eight or nine times that it is half. Of two
// clients that pay the same price for a higher limit the one with less gains more by it, and so
// they become equal. So a server whose goodput grows slowly over a wide range of limits is not
// driven to its last few percent. A dozen disks with a queue each are one: they give four fifths of
// what they can, with a sixth of the latency of 256 calls at once. Round trips below half a
// millisecond need not be shorter, and there the price is negative.
//
// # Bounds
//
// Limits that are found lie between 2 and [MaxLimit]. bounds.go has all numbers, with what
// happens at each. The queue of waiting calls has no bound of its own: it is as long as there
// are goroutines in Enter. Nothing here has a goroutine; limits change within Leave.
package pace
