// Package vfstest is the suite that every vfs.FS passes: the fake in memory, a
// directory on disk, a server at the far end of a network, and each wrapper.
// The contract in package vfs says in prose what these tests say in code.
//
// A test of an implementation is one call:
//
//	vfstest.Run(t, vfstest.Config{New: func(t *testing.T) vfs.FS { ... }})
//
// An FS that nobody changes is judged by the tree that it has:
//
//	vfstest.RunReadOnly(t, fs)
//
// and one that was made of another, as a snapshot is, by that too:
//
//	vfstest.Run(t, vfstest.Config{New: ..., Freeze: func(t *testing.T, f vfs.FS) vfs.FS { ... }})
//
// # What is judged
//
// There is one group of tests, in the file of the same name, for each method of the
// contract, and some for what concerns them all: names, handles, identities,
// holes, concurrency, cancelling, size. Where RFC 1813 and POSIX leave a choice
// the suite accepts every answer that they permit. What an FS may leave out
// ([vfs.Attr] beside a result, a [vfs.WCC]) is compared only as far as it is
// marked valid. No test sleeps or expects two moments to have different times: where
// a time has to change, it is first set far back.
//
// After the tables [RunModel] applies random operations to the FS and to
// internal/base/memfs, and compares every status and the trees that result.
//
// # Powers
//
// Each power that [vfs.As] finds is proved by its effect, and one that is passed on
// by its effect below the wrapper: a stack that makes an FS over another is given one
// that knows what a crash would lose.
//
//	vfstest.RunPowers(t, vfstest.PowersConfig{New: func(t *testing.T, over vfs.FS) vfs.FS { ... }})
//
// # Exceptions
//
// What an FS cannot do, because of the server behind it or the disk below it,
// is named in Config.Differences with its reason, and shows as a skipped test.
// A name there that no test has fails the run, so that exceptions do not
// outlive what they excuse.
package vfstest
