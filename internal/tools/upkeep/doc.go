// Package upkeep looks after a store of snapshots (package snapshot): it checks that all is there and right, forgets snapshots
// by rules, and removes what no snapshot needs any more.
//
// # Forget
//
// [Forget] removes roots alone: a snapshot that has none does not exist. What it had stays until a prune. So forgetting is safe beside
// all else, a backup on top of a forgotten snapshot included: the lease of that backup keeps prunes out.
package upkeep
