// Package fdcache keeps files open between the calls of clients, since NFSv3 has no OPEN.
//
// A descriptor is opened by the server, with the server's rights, and shared by all
// callers. A call that uses one on behalf of a caller checks that caller first. It is
// found by handle and by [Use]; a call pins it, and unpins it when it has done.
//
// # When one is closed
//
// The cache has a bound. At the bound a call that opens one more closes one that is idle
// and clean, by the clock algorithm. [Sweeper] looks through the cache every second, and
// closes what was idle for some seconds. [Cache.Forget] closes what belongs to an object that
// lost its last name, so that its blocks become free.
//
// # Dirty descriptors
//
// A descriptor through which data was written stays open until the data are synced: the
// kernel reports a failed write-back only to descriptors that were open before. Such
// descriptors are in a list, the oldest first ([DirtyList]), which has a bound of its own.
// The user of the cache keeps that bound, and does the syncing.
//
// # Locks within
//
// The cache has shards, by handle, each with a mutex. DirtyList has another. Each is held
// for a few instructions, and none is taken under another. To unpin takes none.
package fdcache
