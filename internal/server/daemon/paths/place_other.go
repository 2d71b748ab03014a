//go:build !linux

package paths

// PlaceOf knows nothing here: only Linux serves directories.
func PlaceOf(string) (p Place, isMount bool, err error) { return p, false, nil }

func mountOf(string) uint64 { return 0 }

// VolumeOf knows nothing here.
func VolumeOf(string) ([]byte, error) { return nil, nil }
