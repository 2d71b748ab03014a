package outage

import "time"

const (
	// DefaultAnswer is how long a call waits for the server.
	DefaultAnswer = 5 * time.Second
	// askEvery is how often a silent server is asked whether it is there.
	askEvery = time.Second

	// maxOrphans bounds the changes that nobody waits for. At the bound no change is begun: it is a
	// BusyError.
	maxOrphans = 1024
	// keepOutcome is how long the outcome of such a change waits for a caller that takes it over.
	keepOutcome = 2 * time.Minute

	// maxRemembered bounds what is remembered, of attributes, rights and names each. At the bound one that
	// chance picks is forgotten.
	maxRemembered = 1 << 16
)
