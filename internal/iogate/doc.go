// Package iogate bounds how many threads the disk may hold.
package iogate
