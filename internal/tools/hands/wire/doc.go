// Package wire has what a coordinator and its workers tell each other, and its encoding: XDR
// (RFC 4506), of hands.x. Every list has a bound there, so that a message takes no more memory than
// its length suggests, whoever wrote it.
package wire

//go:generate go run github.com/nfsbox/nfsbox/cmd/xdrgen -pkg wire hands.x
