// Package way says how a path of this host is looked up, and which other users could change
// what it leads to. Whoever may replace one step decides that, whatever the rights at its end:
// a server's state and a cache's bytes are believed only where nobody else can.
//
// Nothing is opened, and nothing is changed.
package way
