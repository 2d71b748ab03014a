//go:build linux

package linux

import "golang.org/x/sys/unix"

// caps are a thread's capabilities, as capset(2) has them.
type Caps [2]unix.CapUserData

func GetCaps(c *Caps) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capget(&hdr, &c[0])
}

func SetCaps(c *Caps) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capset(&hdr, &c[0])
}

// without returns c less one capability in its effective set.
func (c Caps) Without(capability int) Caps {
	c[capability/32].Effective &^= 1 << (capability % 32)
	return c
}

// has reports whether a capability is in the effective set.
func (c *Caps) Has(capability int) bool {
	return c[capability/32].Effective&(1<<(capability%32)) != 0
}
