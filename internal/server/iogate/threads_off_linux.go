//go:build !nfsbox_cthreads || !cgo

package iogate

import "errors"

// startThreads has no threads: C is not part of the usual build.
func startThreads(*pool, *Options) (backend, error) {
	return nil, errors.New("built without cgo and the tag nfsbox_cthreads")
}
