// Package config reads, checks and shows what an operator says: nfsbox.toml and the flags
// of `nfsbox serve`.
//
// [Config] is one list of keys, for the file and the command line alike: its tags name
// the keys, the flags, and the help. [Load] reads the file, lays the flags over it, fills
// in what follows from the rest, and checks the result. It reports every fault at once,
// each with its line or its flag. An unknown key is an error.
//
// What a value means is decided by the packages that use it; their bounds are checked
// here, so that `nfsbox serve --check` finds what a start would find. [Config.TOML] shows
// the configuration with all defaults filled in. [Config.Keep] tells what a reload may
// change from what waits for a restart.
//
// Nothing here opens more than the file, and nothing is kept: a Config is a value.
package config
