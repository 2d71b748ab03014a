// Package crash takes away the server's power, or kills its process, while clients
// change things of every kind. What the server acknowledged as stable must be there
// afterwards: a ledger knows what that is. The disk is the simulated one (testkit/sim)
// over a real directory, and in TestCrashKill the real one. TestCrashMissingSync leaves
// out each of the server's syncs in turn, and a loss must be found each time.
//
// One run takes about half a minute. NFSBOX_SOAK=1 runs 500 seeds instead of 15.
package crash
