//go:build !linux

package daemon

import (
	"log/slog"
	"math"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// prepareProcess has nothing to prepare elsewhere than on Linux.
func prepareProcess(*config.Config, *slog.Logger) {}

// fileLimit cannot tell.
func fileLimit() uint64 { return math.MaxInt }

// isSocket cannot tell: net will.
func isSocket(uintptr) bool { return true }

// monotonic is for service managers of Linux.
func monotonic() string { return "" }

// holder cannot tell.
func holder(_, _ string) string { return somebody }
