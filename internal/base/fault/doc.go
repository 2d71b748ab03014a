// Package fault turns an error into what people and programs are told: one line of text that
// names each thing and each cause once, a code, and what to do about it.
//
// Errors gather context on their way up: a URL, a host, a procedure, a system call, its
// address. Printed as they are, they name the host three times and the cause twice. [Text]
// takes such an error apart along Unwrap, drops what has been said before, and writes what is
// left in the field's words. [Code] is what a script can compare: errno(3)'s name if there is
// one, else NFS's. [Advice] says what an administrator would do next. [Clean] makes what a peer
// has written safe to show, and [CleanJSON] the JSON that holds it.
//
// The commands, doctor, the server's log and the file API use it. It knows the errors of package vfs and of
// the standard library. Errors of one protocol are known where that protocol is.
package fault
