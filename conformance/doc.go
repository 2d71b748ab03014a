// Package conformance tries nfsbox with the NFS of the Linux kernel, both ways,
// on machines that can mount nothing: it boots a Debian kernel under QEMU, with
// software emulation, in a guest that can reach nothing but ports of
// this machine's loopback.
//
//	make conformance
//
// As a client the guest mounts an nfsbox serve, twice and without a common cache,
// and does a workload with a verdict for each item: it creates, renames, links,
// maps, locks, packs a source tree and unpacks it, has git and SQLite work and
// check. As a server it exports disks by the kernel's own nfsd, which the
// protocol's suite (internal/testkit/v3suite) is run against, so that the suite asks for
// nothing that the reference does not do.
//
// # The parts
//
// kernel.go fetches the kernel's Debian package and finds modules and what they
// depend on. image.go packs an initramfs: the guest program, the modules, and
// tools of this machine with their libraries. machine.go runs QEMU and reads the
// lines that the guest prints on its console. guest is that program, /init, in Go
// as well, so that the image needs no shell and no distribution.
//
// # What it needs
//
// Linux on amd64, Go, and the Debian packages qemu-system-x86 e2fsprogs git
// sqlite3 nfs-common rpcbind tar. The kernel's package, and that of its server's
// tools, are downloaded with apt-get, once, and kept in the user's cache directory.
// Because of the time that they take the tests are skipped unless NFSBOX_VM=1 or
// NFSBOX_REQUIRE=vm asks for them. Where something is missing they are skipped
// under the one, and say so, and fail under the other.
//
// The guest is some 15 times slower than the host: verdicts mean something, times
// do not. Everything is bounded; a run takes a few minutes.
package conformance
