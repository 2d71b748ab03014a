package cache

import "time"

const (
	// minAge and maxAge bound how long attributes are believed while a file stays open: acregmin and
	// acregmax of nfs(5). Each time that nothing has changed doubles it. Rights are believed for maxAge.
	minAge = 3 * time.Second
	maxAge = time.Minute

	// minSettle is the least time that must pass after a change until times tell the next one
	// from it. A server with coarser times says so (time_delta).
	minSettle = 10 * time.Millisecond
	// unknownSettle is that of a server that does not say how coarse its times are.
	unknownSettle = time.Second
	// maxSkew is by how much the clocks of the server and of this host may differ.
	maxSkew = time.Second

	// maxFetches bounds the fetches in flight, each of one granule, or of a run into a reader's buffer.
	// At the bound reads go straight through.
	maxFetches = 64
	// maxRun bounds the granules of a run, which is one READ.
	maxRun = 16
	// maxTouched bounds the granules of an open file of which is known that they were read
	// once. At the bound all are forgotten.
	maxTouched = 4096
	// maxTries bounds how often a read begins anew because a fetch of another reader came to
	// nothing. At the bound it goes straight through.
	maxTries = 8
	// samples is how many of the last samples of the disk, and of the server, are compared (contest). fewSamples of the
	// server will do.
	samples    = 16
	fewSamples = 4
	// loses8 is how much longer the disk takes than the server when it loses, in eighths.
	loses8 = 12
	// quickSmall and quickLarge are what the disk may take in any case, for a small read and for a mebibyte: what is
	// kept spares the server, too.
	quickSmall = time.Millisecond
	quickLarge = 4 * time.Millisecond
	// minPast is for how long reads go past a disk that is slower. Each time that it is found to be slower still
	// doubles that, up to maxPast.
	minPast = 10 * time.Second
	maxPast = 10 * time.Minute
	// maxProbe bounds for how long reads go past a slow disk to learn what the server takes. A few reads are enough.
	maxProbe = time.Second
	// maxGrants bounds the remembered rights of callers. At the bound all are forgotten.
	maxGrants = 16 << 10
)
