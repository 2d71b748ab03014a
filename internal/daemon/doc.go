// Package daemon is `nfsbox serve`: it puts a directory, the table of exports
// and the server together, listens, and ends them in good order.
//
// # State
//
// What must outlive a restart lies in the state directory, in a folder of its
// own for each directory that is served, named by a hash of its path: the key
// under which handles are sealed, and localfs' map of handles where it needs
// one. Without the key every handle that clients hold would be stale.
//
// The state directory must not lie within the tree that is served. A client that
// can read the key can forge handles, and one that can write the map can lead
// handles astray.
package daemon
