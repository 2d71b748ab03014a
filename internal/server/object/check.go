package object

import "fmt"

// Check compares what a reader returned with what was announced. It is nil, or an error
// that Is [ErrMismatch]. It is for drivers.
func (o *PutOptions) Check(size int64, sum Sum) error {
	if o.Size >= 0 && size != o.Size {
		return fmt.Errorf("%w: %d bytes came, not %d", ErrMismatch, size, o.Size)
	}
	if o.Sum != nil && sum != *o.Sum {
		return fmt.Errorf("%w: its SHA-256 is %v, not %v", ErrMismatch, sum, *o.Sum)
	}
	return nil
}

// Range returns how many bytes a Get of n bytes from off on yields of an object of that
// size, or an error that Is [ErrRange]. It is for drivers.
func Range(size, off, n int64) (int64, error) {
	if off < 0 || off > size {
		return 0, fmt.Errorf("%w: byte %d of %d", ErrRange, off, size)
	}
	if n < 0 || n > size-off {
		n = size - off
	}
	return n, nil
}

// CheckList checks List's arguments and returns the limit in force. after may be
// any prefix, whether there is such an object or not. It is for drivers.
func CheckList(prefix, after string, limit int) (int, error) {
	if err := CheckPrefix(prefix); err != nil {
		return 0, err
	}
	if err := CheckPrefix(after); err != nil {
		return 0, fmt.Errorf("after %s: %w", quote(after), err)
	}
	if limit <= 0 || limit > PageSize {
		limit = PageSize
	}
	return limit, nil
}
