// Package server holds the tests of nfsserver as a peer sees it: raw procedures over
// loopback, hostile and greedy peers, repeated calls, listings, exports, the suite of
// RFC 1813 and libnfs' tools. They speak over the wire; tests of one service stand
// beside it, in nfsserver/internal.
//
// One run takes about half a minute. NFSBOX_SOAK=1 has thousands of clients where
// otherwise hundreds are enough, and holds latencies to bounds: on a quiet machine only.
package server
