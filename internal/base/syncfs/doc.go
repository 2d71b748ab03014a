// Package syncfs lets calls that each want an object on the disk share one syncfs(2) of its
// file system. It makes the same things stable as an fsync(2) for each of them. Where many
// objects are written at once, a journal is committed once instead of once an object.
//
// [Whole] does it only where that loses nothing. A file system has to be known to tell of
// every failure ([Tells]). A failure is told to all that share the sync, and each of them
// then syncs its own object, which says whose bytes are lost. From then on nothing is shared.
// A syncfs waits for what others write as well: one that takes long is followed by a time
// without.
//
// [Rounds] is the sharing itself: a call that comes while one runs waits for the next.
package syncfs
