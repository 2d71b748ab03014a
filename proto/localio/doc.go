// Package localio is the LOCALIO protocol on the wire: program 400122, by which
// a client and a server of NFS find out that they are on one host. It is asked
// on the connection of NFS itself, never through rpcbind.
//
// Procedure 1 has had two meanings, so that there are two specifications of one
// program, in localio.x and getuuid.x:
//
//   - [LOCALIOPROC_UUID_IS_LOCAL], in Linux since 6.12, takes a nonce of the
//     client's ([UUID_IS_LOCALargs]) and answers nothing;
//   - [LOCALIOPROC_GETUUID], the form first proposed, takes nothing and answers
//     the server's UUID ([GETUUIDres]).
//
// A call tells them apart by the length of its arguments, 16 bytes or none,
// which is for the program's server to look at: one number has one
// meaning in RFC 5531, and the specifications keep to it.
//
// Both only begin the talk. What two processes of nfsbox on one host say to each
// other once they have met is in session.x: messages of a Unix socket, no program.
package localio

//go:generate go run github.com/nfsbox/nfsbox/cmd/xdrgen -pkg localio localio.x
//go:generate go run github.com/nfsbox/nfsbox/cmd/xdrgen -pkg localio getuuid.x
//go:generate go run github.com/nfsbox/nfsbox/cmd/xdrgen -pkg localio -open session_why session.x
