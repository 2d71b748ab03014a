// Package conformance tests nfsbox against the NFS client and server of the Linux kernel. It
// needs no right to mount: it boots a Debian kernel under QEMU, with software emulation, in
// a guest that reaches only ports of this machine's loopback.
//
//	make conformance
//
// As a client the guest mounts an nfsbox server twice, without a common cache. Its workload
// has a verdict for each item: it creates, renames, links, maps and locks files, packs and
// unpacks a source tree, and runs git and SQLite. As a server it exports disks by the
// kernel's nfsd. The protocol's suite (internal/testkit/v3suite) runs against that, so that
// the suite asks for nothing that nfsd does not do; and so does the suite of the contract
// (vfs/vfstest), over our client.
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
// tools, are downloaded with apt-get, once, and kept in the user's cache directory. The tests
// take minutes, and are skipped unless NFSBOX_VM=1 or NFSBOX_REQUIRE=vm asks for them. If
// something is missing, they are skipped with NFSBOX_VM, and fail with NFSBOX_REQUIRE.
//
// The guest is about 15 times slower than the host, so its times mean nothing. Every wait is
// bounded; a run takes a few minutes.
package conformance
