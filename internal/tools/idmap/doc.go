// Package idmap shows a file system with other owners: those that its objects shall have
// elsewhere. A copy from it, or a comparison with it, needs to know nothing of the rules.
//
// What is mapped is the owner and group in all attributes, and the named users and groups of
// access control lists. Extended attributes are not looked into. If rules give two users of a list one id, no
// file system takes that list: the copy goes without, and it is counted as lost.
package idmap
