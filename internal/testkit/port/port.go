// Package port finds ports of loopback for servers of tests that are started again, or are another program:
// the port is known before such a server has it. A port that the kernel gave out might be given to
// somebody else meanwhile, and on a busy machine it is.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Linux gives out ports from 32768 on (ip(7), ip_local_port_range); other systems from 49152.
const (
	first = 20000
	last  = 32767
	tries = 1000 // of which at least one is free, unless the machine has thousands of servers
)

// Free is an address at host, which is one of this machine, with a port that nobody has, and that the kernel gives
// to nobody who does not name it.
func Free(host string) (string, error) {
	var why error
	for range tries {
		address := net.JoinHostPort(host, strconv.Itoa(first+rand.IntN(last-first+1)))
		l, err := net.Listen("tcp", address)
		if err == nil {
			return address, l.Close()
		}
		why = err
	}
	return "", fmt.Errorf("no port of %s is free: %w", host, why)
}
