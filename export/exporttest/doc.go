// Package exporttest holds what exports promise against whatever serves them:
// the view itself, a server and its client, a way past the network. [Rights] is
// a matrix of who may do what, by which rule, to which object; what is expected
// is worked out by a model of a few lines that knows POSIX and exports(5), and
// nothing of the code that it judges. [Descriptors] is the same for files that are
// handed out to other processes, which try to make more of them than they are.
package exporttest
