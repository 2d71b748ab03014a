// Package delta walks a tree, and joins each of its directories by name with one of another tree. It
// tells what is on both sides, on the left only, and on the right only.
//
// # What it costs
//
// A directory costs one listing on either side. Nothing is asked for a name that both sides
// have: handles and attributes are those that came with the listings. A name that only the right
// has costs a LOOKUP on the left, and [lookups] of them a LOOKUP of their directory.
//
// # Large directories
//
// The entries of the right directory are held, packed into about 140 bytes each, while the left
// one is listed past them. What has been met is let go. Where the right directory would take more
// than its share ([heldBytes]), only names whose keyed hash is in a range are held. The range is cut
// down until they fit. Then both sides are listed once more for the next range, as
// wide as the size that is known by then allows. So each name belongs to one pass, whatever order
// the sides have. 1,000,000 entries with names of 25 bytes take 4 listings a side.
//
// A file system of this host (vfs.Forgetter) looks at each object that it lists. So it lists names
// alone as soon as it is known that there are several passes. A visitor that needs more looks the name up.
//
// All directories that are joined at once share heldBytes. Each may take two thirds of what is left, and
// at least [minHeld], so none waits for another: it goes by smaller ranges.
//
// # What is claimed
//
//   - A pair was in both listings. Its attributes are as old as these.
//   - What is only on the left was not in a listing of the right directory that came to its end. It
//     may have come there since, and the right side may take two names for one. So the visitor
//     looks the name up before it reports or creates it.
//   - What is only on the right ([Visitor.Extra]) is claimed last, as the visitor may remove it. Both
//     listings have come to their end by then. After that a LOOKUP on the left found no such name,
//     and the left directory still had its own name. After a fault that cut a listing short,
//     nothing more is claimed for that directory.
//
// A directory that changes between two passes is joined as it is met: a name that is there all the
// time is met once.
//
// # Peers that are broken or hostile
//
// The left side is package walk's, with its faults. A listing of the right side whose position the
// server no longer knows (vfs.ErrBadCookie) begins again, at most [maxRestarts] times. One that
// gives the same names for ever is walk.ErrStuck. A name that vfs.CheckName refuses is a fault of
// its side, and never a claim. A name that comes twice on the right is one entry. One that comes
// twice on the left is a pair once, and then only on the left. A directory that does not get done
// within [maxPasses] is [ErrPasses].
package delta
