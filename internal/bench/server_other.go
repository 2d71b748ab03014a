//go:build !linux

package bench

import (
	"errors"
	"fmt"
	"time"
)

// processTime needs /proc.
func processTime(int) (time.Duration, error) {
	return 0, fmt.Errorf("processor time of another process: %w", errors.ErrUnsupported)
}
