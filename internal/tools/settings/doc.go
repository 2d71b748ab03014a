// Package settings has what a user has set for all runs of the command: short names of places
// (aliases), defaults of flags, and URL arguments of servers. They stand in a file of TOML
//
//	[alias]
//	filer = "nfs://10.0.0.5/export?uid=1000"   # filer:home is nfs://10.0.0.5/export/home?uid=1000
//
//	[flags]                                     # of all commands that have them
//	progress = "lines"
//	[flags.cp]                                  # of one
//	verify = true
//
//	[server."10.0.0.5"]                         # arguments of URLs to this host; "*" is any
//	max-load = 16
//
// and, flags alone, in the environment: NFSBOX_CP_VERIFY=true, or NFSBOX_VERIFY for all. What
// the command line says comes first, then the environment, then the file: of each, what is said
// of one command before what is said of all. Of servers, what a URL says comes first.
//
// The file is the user's own, and still input: its size is bounded, and what is wrong in it is
// an error that names the line, before anything is done.
package settings
