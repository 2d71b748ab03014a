package main

import (
	"os"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/snapshot/lease"
)

// leaseOf are the options for a lease of a command. Other hosts read in it who has the store, and by which command.
func leaseOf(e *env, command string) lease.Options {
	host, _ := os.Hostname() // a lease may lack it
	return lease.Options{Now: time.Now, Rand: randReader(e.rand), Host: host, Command: command}
}
