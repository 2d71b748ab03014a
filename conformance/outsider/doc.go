// Package outsider tries the built command as people do who have not read its
// code: an attacker on the network, a user with a live and odd tree, a server or
// a network that is at fault. It knows the command's flags, exit statuses and
// JSON, and imports nothing of ours: it speaks RPC by bytes of its own
// (raw_test.go), reads trees with package os alone (tree_test.go), and puts
// proxies of bytes between the two ends (proxy_test.go). Tests that share code
// with what they test share its mistakes; these cannot.
//
//	go test ./conformance/outsider                       # builds the command, and tries it
//	NFSBOX_BINARY=./nfsbox-old go test ./conformance/outsider   # tries another build
//
// A test of a mended fault fails with a build from before, which the second form
// is for.
//
// # What it needs
//
// Linux. Some tests mount file systems (tmpfs, overlayfs, a disk image that folds
// case) or act as two users, which takes root; without it they are skipped, and
// say so, and fail where NFSBOX_REQUIRE names root. A kernel that lacks one of the
// file systems skips its test alone.
//
// # Where it stays
//
// Everything is on loopback (TestWorkersInNetworks: in network namespaces of its own), whose other addresses (127.0.0.2 and so on) play the
// strangers. Each server listens on a port of its own, with a state directory of
// its own; each test ends what it began, by its process.
//
// Times in these tests are bounds beyond which something hangs, ten times what it
// takes or more. How fast things are is measured in compare, not here, but for one
// large file over a long way: TestFarFile, with NFSBOX_SOAK=1.
package outsider
