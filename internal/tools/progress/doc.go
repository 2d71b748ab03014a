// Package progress counts what a long task does, and shows it.
//
// A task adds to the counters of a [Tracker], which costs one atomic addition, and reports
// errors, differences and notes as [Event]s. A [Renderer] shows both: [Line] on one line of a
// terminal that is rewritten in place, or as plain lines in a log; [JSON] as one object a line
// for programs.
//
// # Honest totals
//
// Until all directories are listed, the total is not known. Totals are therefore shown as "≥"
// until [Tracker.CloseTotals], with no percentage and no time of completion.
//
// # Load
//
// Beside what is done a line has how many calls each server has under way, of how many that it may have, and how often
// servers were too busy ([Tracker.SetLoads]): "read 12/16 + write 8/9". Where there is no room for all, that goes early.
//
// # Names are hostile
//
// A file name may hold escape sequences that move the cursor, or characters that
// reverse the direction of writing. Everything that a peer named goes through
// [Clean] before it reaches a terminal.
package progress
