//go:build !linux

package daemon

import (
	"log/slog"
	"math"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

func prepareProcess(*config.Config, *slog.Logger) {}

func fileLimit() uint64 { return math.MaxInt }

// isSocket cannot tell: net will.
func isSocket(uintptr) bool { return true }

func monotonic() string { return "" }

func holder(_, _ string) string { return somebody }
