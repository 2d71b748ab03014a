//go:build !unix

package main

import "os"

// terminal cannot tell: nothing is taken for a terminal to be drawn on.
func terminal(*os.File) func() (width, height int) { return nil }

// resizes never tells.
func resizes() (told <-chan struct{}, stop func()) { return nil, func() {} }
