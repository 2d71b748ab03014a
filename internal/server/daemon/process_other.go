//go:build !linux

package daemon

import "math"

// prepareProcess has nothing to prepare elsewhere than on Linux.
func (d *daemon) prepareProcess() {}

// fileLimit cannot tell.
func fileLimit() uint64 { return math.MaxInt }

// isSocket cannot tell: net will.
func isSocket(uintptr) bool { return true }

// monotonic is for service managers of Linux.
func monotonic() string { return "" }

// holder cannot tell.
func holder(_, _ string) string { return somebody }

// ourProcess cannot tell.
func ourProcess() process { return process{} }
