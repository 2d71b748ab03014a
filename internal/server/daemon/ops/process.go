package ops

import "time"

// process is what the server takes of its host; 0 is unknown.
type process struct {
	threads int
	cpu     time.Duration // total, of all processors
	memory  uint64        // resident bytes
}
