package attrcache

import "time"

// The times of nfs(5), if none are said.
const (
	DefaultFileMin = 3 * time.Second
	DefaultFileMax = time.Minute
	DefaultDirMin  = 30 * time.Second
	DefaultDirMax  = time.Minute
)

const (
	// DefaultObjects bounds the objects that something is kept of: about 20 MiB. At the bound
	// the one that was not used for longest is forgotten. An object that a call is changing
	// stays, so there may be as many more as calls.
	DefaultObjects = 32 << 10
	// DefaultNames bounds the names, in the same way.
	DefaultNames = 32 << 10

	// maxRights bounds the callers whose rights on one object are kept. At the bound the one
	// whose time ends first is forgotten.
	maxRights = 16
)
