// Command xdrgen writes Go for a specification in the XDR language: the types
// of RFC 4506 with encoders and decoders that neither reflect nor allocate, and
// the programs of RFC 5531. It is to Go what rpcgen is to C.
//
//	xdrgen [-pkg name] [-o file] [-bulk type.field,...] [-once PROC,...] [-open enum,...] spec.x
//
// Two files come out, beside the specification unless -o says otherwise:
// spec_xdr.go and spec_xdr_test.go. Both are the same for the same input,
// formatted, and meant to be committed. A specification with errors writes
// nothing; the errors say file, line and column.
//
// # Types
//
// A name that starts with an upper-case letter stays; any other loses its
// underscores and has the letters behind them raised (post_op_attr, PostOpAttr).
//
//	int, unsigned int, hyper, unsigned hyper   int32, uint32, int64, uint64
//	float, double, bool                        float32, float64, bool
//	enum e                                     type E int32, constants, String
//	opaque x[n]                                [n]byte
//	opaque x<n>, string x<n>                   []byte, at most n
//	T x[n], T x<n>                             [n]T, []T
//	T *x                                       *T; []T if T is the node of a list
//	struct, union                              struct
//	typedef of a number or of bytes            what it stands for
//	typedef of an array or list of T           a named slice or array
//
// A struct whose last field points to the struct itself is the node of a linked
// list: its Go type lacks that field, and a field that points to it is a slice. Next
// and AppendNext take and make such a list one element at a time.
//
// A union is flat: the discriminant, and one field for each arm that is not
// void. Decoding sets the discriminant and the arm that it selects, and leaves
// the others as they are; encoding looks at no other.
//
// Every struct, union and named array has AppendXDR and DecodeXDR; see package
// github.com/nfsbox/nfsbox/xdr for what they promise. Lengths are checked in
// both directions. A value that an enum lacks is refused when it is decoded (RFC
// 4506, section 4.3), unless -open names the enum: a status, of which a peer that is
// newer than the specification has others, or what a program answers with a status
// of its own.
//
// # Programs
//
// Each version becomes an xdr.Program, and each procedure a variable that points
// into it. Arguments and results that have no methods of their own (a bare bool,
// a string, several arguments) become a struct, named for the procedure, with a
// field Value or Arg1, Arg2 and so on. Where two versions name a procedure alike,
// the version goes before the name.
//
// -once names the procedures that must not be repeated when an answer is lost;
// -bulk names opaques that a transport shall carry outside the codec, and gives
// every type that holds one the methods of xdr.BulkArgs and xdr.BulkResult. Such
// an opaque is the last field wherever it is held.
//
// # Not supported
//
// quadruple, for Go has no such float. A type that holds itself by value through
// the arm of a union, which RFC 4506 allows: an optional is the same on the wire.
package main
