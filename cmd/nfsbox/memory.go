package main

import (
	"math"
	"runtime/debug"
	"strings"
)

// memoryGoal is where the collector begins to keep memory small, in bytes, for commands on snapshots. They turn over buffers of up to
// 16 MiB, so that what is not collected yet would be as much as what is in use: that is well below the goal, however large the tree is.
const memoryGoal = 208 << 20

// boundMemory sets memoryGoal for a command on snapshots, unless GOMEMLIMIT says something else.
func boundMemory(command string) {
	verb, _, _ := strings.Cut(command, " ")
	switch verb {
	case "backup", "restore", "snapshots":
		if debug.SetMemoryLimit(-1) == math.MaxInt64 {
			debug.SetMemoryLimit(memoryGoal)
		}
	}
}
