// Package loopdisk makes an ext4 in an image that a test mounts, and whose power it cuts: what a
// file system promises of syncs is shown by what is on its disk after that. A process that is
// killed shows nothing, since the kernel keeps what was written.
package loopdisk
