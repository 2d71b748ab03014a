// Package exporttest checks what exports promise, whatever serves them: the view
// itself, a server and its client, a way past the network. [Rights] is a matrix of
// callers, operations, rules and objects. A model of a few lines computes what is
// expected: it knows POSIX and exports(5), and nothing of the code that it judges.
// [Descriptors] is the same for files that are handed out to other processes, which
// try to do more with them than they may.
package exporttest
