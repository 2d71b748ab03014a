//go:build linux

package linux

import "golang.org/x/sys/unix"

// Caps are a thread's capabilities, as capset(2) has them.
type Caps [2]unix.CapUserData

// GetCaps fills c with the capabilities of the calling thread.
func GetCaps(c *Caps) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capget(&hdr, &c[0])
}

// SetCaps gives the calling thread, and no other, the capabilities c.
func SetCaps(c *Caps) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capset(&hdr, &c[0])
}

// Without returns c with one capability less in its effective set.
func (c Caps) Without(capability int) Caps {
	c[capability/32].Effective &^= 1 << (capability % 32)
	return c
}

// Has reports whether a capability is in the effective set.
func (c *Caps) Has(capability int) bool {
	return c[capability/32].Effective&(1<<(capability%32)) != 0
}
