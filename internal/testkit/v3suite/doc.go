// Package v3suite is the suite of the protocol: what RFC 1813 says of NFS version
// 3 and MOUNT, held against any server by raw procedures over a connection.
//
// A test of a server is one call:
//
//	v3suite.Run(t, v3suite.Target{Dial: dial, Export: "/export", Identities: true})
//
// vfs/vfstest judges a file system behind an interface. This suite judges what goes over the
// wire: every field of every
// result, the attributes around each operation (post_op_attr, wcc_data), cookies,
// verifiers and the byte limits of pages, credentials, and what a server does
// with arguments that no client of good will would send.
//
// # What is judged
//
// One group of tests for each of the 21 procedures, in the file of the same name,
// then groups for what concerns them all: stale and bad handles, names, denied
// callers, exports for reading only, full disks, borders of file systems,
// identities, credentials, RPC itself, and MOUNT. Where the RFC leaves a choice,
// or where all servers agree on something else, every such answer is accepted,
// and a comment says so. No test sleeps, or relies on the clock to move between two calls:
// where a time has to change, it is first set far back.
//
// # The matrix
//
// matrix.go lists every pair of a procedure and a status that the RFC has, and
// whether the suite provokes it (covered) or why a client cannot (exempt).
// The package's tests want every pair in one of the two. A run without skips fails if a
// pair is covered by the matrix and was not seen.
//
// The tests of the suite itself let a server lie in one field of one procedure
// at a time, for every field that there is, and want each lie found.
//
// # Differences
//
// What a server does in its own way is named in [Target].Differences with the
// reason. Such a test is run all the same and may fail; if it holds, the run
// fails, so that the list stays honest.
//
// # Neighbours
//
// Below: oncrpc, xdr, proto/nfs3 and proto/mount3; nothing of the server or the
// client, so that a fault of theirs cannot hide itself. Above: tests of
// nfsserver, and of other servers beside it.
package v3suite
