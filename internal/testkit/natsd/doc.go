// Package natsd starts nats-server for tests: with JetStream, on a free port of loopback or in a
// network namespace. It is killed, loses its files and comes back as a test wants.
//
// The program is found in PATH. Debian has it as nats-server.
package natsd
