package progress

import "github.com/nfsbox/nfsbox/internal/base/fault"

// Clean is [fault.Clean]: a name as a terminal may show it.
func Clean(name string) string { return fault.Clean(name) }
