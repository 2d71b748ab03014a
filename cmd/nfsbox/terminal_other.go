//go:build !unix

package main

import "os"

// terminal returns nil: on this system no output is drawn on.
func terminal(*os.File) func() (width, height int) { return nil }

func resizes() (told <-chan struct{}, stop func()) { return nil, func() {} }
