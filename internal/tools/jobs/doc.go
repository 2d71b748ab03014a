// Package jobs keeps jobs that have names. Each has a directory with the record of what is done (package
// job), and with job.json, which says what the job is and how its last run ended.
//
// # The directory
//
//	copied    the record; a run has it locked from before it reads or writes anything else here
//	index.*   the record's index, made from it
//	parts     large files that are copied in part, while there are some
//	job.json  the job; docs/json.md has its fields
//
// A copy without a name has a directory, too, beside them, while there is something to go on from. It
// is itself what a run has locked, and has "begun", which says what is copied.
//
// job.json is replaced as a whole: written under a temporary name, synced, renamed. It is there
// from when the first run has refused nothing and copies. While a run is under way it is replaced
// every [SaveEvery], with what was counted by then. While a run is under way, and after it
// was killed, its state is [Running]: then only the lock tells which of the two.
//
// A directory that is another user's, or to which others may write, is refused, and so are such files in it.
// What they say may be that user's command. The directories above it may be root's, too.
//
// What job.json says is taken for hostile. It is read if it has up to maxFile bytes, all its fields and no other, and
// values that make sense. Any other is an error, and nothing is changed. A later program
// that adds a field takes another version, since an earlier one would drop it.
//
// # Orders
//
// A run is told what to do by an [Order], control.json, in its record's directory. That needs no socket, and no
// process number, which another process may have got. It works from another container that has the directory. An
// order gets its name by a link, which replaces none, and is removed by the run that has taken it.
//
// # Earlier programs
//
// They wrote three files in the place of job.json: "target" (how DEST was understood), "places"
// (for people) and "source" (which directory SOURCE was). They are read where there is no
// job.json, and stay.
package jobs
