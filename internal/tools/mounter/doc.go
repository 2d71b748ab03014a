// Package mounter is the process of a mount: it finds the server, mounts, answers the kernel until it is unmounted, and
// then makes stable what is not.
//
// The process that a user starts returns when the mount answers. What goes on is a second one, of the same program
// (Background). Both are told what to do by the same arguments. While the server cannot be reached the first waits, for
// as long as the option retry says, or lets the second go on alone (bg).
//
// What a mount could not make stable is lost when its process ends, and somebody has to hear of it. So each mount
// listens on a Unix socket, whose name is made from the directory: Unmount connects to it, unmounts, and reads what
// the mount reports in the end. Run returns the same report, and its caller tells it: in the background to syslog.
// So it is told too if the socket could not be made.
//
// A process that was killed leaves a directory behind where nothing works. The next mount there takes it away, also root's
// that of a user, into which the kernel lets nobody else: see CheckDir.
package mounter
