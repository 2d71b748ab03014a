// Package upkeep looks after a store of snapshots (package snapshot): it checks that all is there and right, forgets snapshots
// by rules, removes what no snapshot needs any more, and counts what they have.
//
// # Check
//
// [Check] goes through the manifests of all snapshots, which are read and compared with their sums by that, and collects which objects they need. One listing of
// the store says which of them are missing or have another size. With ReadData objects are read, and each range that a snapshot has of one is compared with its sum and
// unpacked. If something is damaged, the manifests are gone through once more, to name what it hurts: a file whose own range of a damaged pack is whole is not hurt.
//
// # Prune
//
// [Prune] collects in the same way what is needed, and removes the rest of what the store lists. It has an exclusive lease meanwhile (package lease), and proves it before
// each few removals. So no backup is under way that relies on what it removes, and none begins. It refuses where a snapshot cannot be read, or a
// listing contradicts another. Packs of which little is needed stay as they are.
//
// # Forget
//
// [Forget] removes roots alone: a snapshot that has none does not exist. What it had stays until a prune. So forgetting is safe beside
// all else, a backup on top of a forgotten snapshot included: the lease of that backup keeps prunes out.
//
// # Stats
//
// [Stats] counts what snapshots have, and collects in the same way what they need of the store. It reads no file.
//
// # Memory
//
// What is needed is collected in rounds: of 40 bytes an object, or 64 bytes a range, at most [roundObjects] and [roundRefs]. What does not fit waits for
// the next round, for which the manifests are read again. One snapshot is open at a time (see package snapshot). A check that reads holds [reads] objects of up to
// 32 MiB. Damages are told of [maxDamages] objects, with [MaxHurts] names each; the rest is counted.
package upkeep
