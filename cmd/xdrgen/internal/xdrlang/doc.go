// Package xdrlang reads the XDR language of RFC 4506 with the program
// definitions of RFC 5531: the .x files that rpcgen reads.
//
// [Parse] goes from text to a checked [Spec] in two passes. The parser builds
// the tree and knows no names; the checker binds every name to what it means,
// evaluates every constant, and refuses what the two RFCs forbid. Behind Parse
// nothing is left to doubt: each [Expr] has its value, each reference its
// definition, no type holds itself by value, no union has a case twice.
//
// Beyond the RFCs it takes what deployed specifications use: "struct foo" as
// the name of a type, "unsigned" alone, "long", the C names of sized integers
// (uint32_t, u_int and their kin), enumerators without a value, and a bare
// "string" as the argument or result of a procedure. Lines that begin with '%'
// are for the C compiler and are skipped.
//
// Errors say file, line and column, and what was expected there. The parser
// goes on behind the definition that it could not read, so that several errors
// are reported at once, [MaxErrors] at most.
package xdrlang
