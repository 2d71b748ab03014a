//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

// exports are the disks of the machine, and the options with which they are exported.
var exports = []struct{ disk, dir, options string }{
	{"/dev/vda", "/export/main", "rw"},
	{"/dev/vdb", "/export/ro", "ro"},
	{"/dev/vdc", "/export/small", "rw"},
}

// serve runs the kernel's own server until the host ends the machine.
func serve() error {
	var table strings.Builder
	for i, x := range exports {
		if err := mount(x.disk, x.dir, "ext4", ""); err != nil {
			return err
		}
		if x.options == "rw" {
			if err := os.Chmod(x.dir, 0o777); err != nil {
				return err
			}
		}
		fmt.Fprintf(&table, "%s *(%s,no_root_squash,insecure,no_subtree_check,async,fsid=%d)\n", x.dir, x.options, i+1)
	}
	if err := errors.Join(mount("nfsd", "/proc/fs/nfsd", "nfsd", ""), statd()); err != nil {
		return err
	}
	return all(
		func() error { return put("/etc/exports", table.String()) },
		func() error { return put("/var/lib/nfs/etab", "") },
		func() error { return put("/var/lib/nfs/rmtab", "") },
		func() error { return tool("/", "exportfs", "-a") }, //nolint:misspell // it is called so
		func() error { return tool("/", "rpc.mountd", "-p", "20048", "-N", "2") },
		func() error { return tool("/", "rpc.nfsd", "-N", "4", "--no-udp", "4") },
		func() error {
			say("ready")
			signals := make(chan os.Signal, 1)
			signal.Notify(signals)
			for range signals { // children end; the host ends the machine
			}
			return nil
		},
	)
}
