//go:build !linux

package bench

import (
	"errors"
	"fmt"
	"time"
)

func process(int) (cpu time.Duration, threads int, err error) {
	return 0, 0, fmt.Errorf("processor time of another process: %w", errors.ErrUnsupported)
}
