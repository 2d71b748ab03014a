// Package daemon is `nfsbox serve`: it puts directories, the table of exports, the gate
// to the disk and the server together, listens, and ends them in good order.
//
// Package config is what it is told to do, and package ops what operators see of it. Package paths
// is what it must know of the paths of its host.
//
// # Life
//
// [Serve] goes through four stages.
//
// It opens all that must succeed before a client is let in: state, directories, server,
// listeners. Then it tells the service manager that it is ready, and serves.
//
// A hangup makes it reload: it opens new directories, and replaces the table at once. A directory
// that is no longer exported is closed when the last call in it has ended. If any of this fails,
// nothing has changed. A reload is prepared beside the server, and the end does not wait for it: a
// dead directory may never answer.
//
// In the end it drains: it reads no more calls, answers those that it has read, and waits for
// clients to close. Then it syncs, and leaves its remembered replies to the next server.
//
// Between an end and the next start the service manager may hold the sockets (socket
// activation). Clients whose connections were closed connect again, wait in the
// listener's queue, and send again what was not answered. The remembered replies keep
// changes from being made twice.
//
// A directory is known by where its path leads, not by the path alone. If another one is
// found there at a reload, because it was replaced or mounted over, handles of the former
// are stale.
//
// # Clients on this host
//
// LOCALIO is on where the directory for its socket can be had. If the configuration names
// that directory, a server that cannot have it does not begin. The server ends LOCALIO's
// sessions before its listeners. A reload leaves sessions alone: what it changes is told
// file by file, where a client watches.
//
// A program of this host that connects over TCP acts as the user who owns its socket, as the kernel
// reports (package sockdiag). What its credentials name counts only if that user may speak for
// others: root, and the user who runs the server. Therefore nobody is squashed on loopback by
// default; where the kernel cannot report users, root is.
//
// # The file API
//
// The file API is a second way to the same table of exports, and so to the same rights
// and through the same gate. Its store of content has lanes of its own there. It begins
// after the NFS server and ends beside it. The files with its callers and certificates
// are read again at a reload. A caller without a proof is nobody, unless the
// configuration says as which user programs of this host call. That is never root by
// default, which could do most harm.
//
// # State
//
// What must outlive a restart lies in the state directory, in a folder of the server's
// own. Its name is a hash of the configuration's path or, without one, of the directory's:
//
//	handles.key   the key under which handles are sealed
//	lock          locked while a server runs with this folder; its process and stage
//	control       the socket of `nfsbox ctl`
//	replies       remembered replies, from a clean end to the next start
//	locks/        which clients hold locks
//	uploads       in which directories uploads by the file API are under way
//	<hash>/       localfs' map of handles of one directory, where one is needed;
//	              without a configuration it lies beside the key
//
// Without the key every handle that clients hold would be stale. A client that could read
// the key could forge handles, and one that could write the map could redirect them: so
// the state directory must not lie within a tree that is served. Nor may the
// configuration, the logs, the files of the file API, or a symbolic link by which one of
// them is found: a user who can replace the link decides what the next reload reads.
//
// By the rights on what lies above it, nobody but root and the server's user may be able to put
// another directory in its place, unless Config.TrustStatePath allows that.
//
// What a bind mount shows elsewhere is known by its place in the file system, from
// /proc/self/mountinfo. Without that, and on NFS, only the directory of an export is known
// again. What a file system is made of, such as an image or the layers of an overlay, is
// not looked for.
//
// # The process
//
// Where the process is the server's alone ([World].Alone), the limit of descriptors is
// raised to what is configured. Then CAP_SYS_RESOURCE is dropped in all threads: with it,
// quotas and reserved blocks would not bind clients.
package daemon
