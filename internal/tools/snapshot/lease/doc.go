// Package lease keeps processes apart that use a store of snapshots at the same time, on any host: what removes objects, and
// what relies on them.
//
// # Who is kept apart
//
// A lease is a small object, leases/KIND-ID-NUMBER. It is shared, by backups and by what reads ([Backup],
// [Read]), or exclusive ([Prune]). Any number of shared ones go together. An exclusive one goes with no other.
//
// A store has no locks. So a holder puts its lease first, and looks for others then ([Take]). Of two that begin together at
// least one sees the other. One that takes an exclusive lease gives way, at once: it withdraws its own, and perhaps tries again
// later. One that takes a shared lease keeps it, and waits until the exclusive one has gone. So neither waits
// for the other, and backups that follow one another without a gap keep a prune out.
//
// # When a lease is over
//
// Each minute the holder puts its lease anew, under the next number, and removes the one that is two before it: so a listing, which shows no
// single moment, cannot miss both. A lease that was not is
// dead after [Life], by the store's clock: those of the hosts are not asked. So is one whose process has gone, if it was of this
// host, since its last boot, and of the same PID namespace. And so is one that somebody waited for, and that did not change for all
// of [Life]: its time may be in the future.
//
// A dead lease that is in the way is removed, and then the store is looked at again. A holder that was only asleep finds its lease gone when it
// puts the next, as it asks for the one before after that; or when it proves it ([Lease.Prove]). What it does then is to stop: nothing
// is published, nothing removed. It may take another lease ([Retake]), and begin again.
//
// # Proof
//
// A holder calls [Lease.Prove] right before it publishes a root, or removes objects, and behind the root again. The proof is that the lease is there, and
// that it was put within [trust] by the holder's own monotonic clock. [Lease.Context] ends when the lease is lost.
//
// # Junk
//
// The name of a lease says of which kind it is; the content only says whose it is. A name that is none counts as an exclusive
// lease to all, since it may be one of a later version. It is over after [Life] like any. So 10,000 files that somebody has put
// among the leases stop everybody for ten minutes, and are then removed by the next one. A user that goes on putting them can stop
// all, but such a user of the store could remove it as well.
//
// At most [maxRead] leases are read at a look, of [maxContent] bytes each. Further ones are judged by name and age alone.
package lease
