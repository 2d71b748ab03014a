package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// ending is a status that a command ends with, and what it means.
type ending struct {
	status int
	why    string
}

// What statuses mean to most commands.
const (
	whyUsage       = "the arguments are wrong; nothing was done"
	whyItems       = "something is not there, may not be looked at, or has failed; each is named"
	whyUnreachable = "a server cannot be reached, or does not export what a URL names"
	whySignal      = "a signal has ended it before it was done"
	whyOutput      = "the output cannot be written"
)

// done are the statuses of most commands, of which the first means what why says.
func done(why string) []ending {
	return []ending{
		{exitOK, why}, {exitUsage, whyUsage}, {exitIncomplete, whyItems},
		{exitUnreachable, whyUnreachable}, {exitInterrupted, whySignal},
	}
}

// printed are those of commands that only print something.
func printed(why string) []ending {
	return []ending{{exitOK, why}, {exitUsage, whyUsage}, {exitIncomplete, whyOutput}}
}

// endings are the statuses of each command; those below bench have the same.
// They are its EXIT STATUS in --help and in the manual.
func endings() map[string][]ending {
	all := map[string][]ending{
		"demo": {
			{exitOK, "the copy is the same as the tree"}, {exitUsage, whyUsage},
			{exitIncomplete, "something has failed"}, {exitDiffers, "the copy differs"}, {exitInterrupted, whySignal},
		},
		"serve": {
			{exitOK, "all ended in good order, also by a signal; with --check: the configuration will do"},
			{exitUsage, "the configuration will not do, the server could not begin, or calls had to be cut off"},
		},
		"exports": {
			{exitOK, "the exports are listed"}, {exitUsage, whyUsage},
			{exitIncomplete, "the server lists exports that nobody can mount, or the output cannot be written"},
			{exitUnreachable, "the server cannot be reached, or does not say"}, {exitInterrupted, whySignal},
		},
		"cp": {
			{exitOK, "all was copied, and with --verify is the same"},
			{exitUsage, "the arguments are wrong, or what they ask for is refused; that was not copied"},
			{exitIncomplete, "items have failed, are not there or may not be looked at; they are listed"},
			{exitUnreachable, whyUnreachable}, {exitInterrupted, whySignal},
		},
		"verify": {
			{exitOK, "both are the same"}, {exitUsage, whyUsage},
			{exitIncomplete, "not all could be compared, whether or not there are differences; what failed is listed"},
			{exitDiffers, "all was compared, and there are differences"}, {exitUnreachable, whyUnreachable}, {exitInterrupted, whySignal},
		},
		"worker": {
			{exitOK, "a signal has ended it, and what was under way is done and reported"}, {exitUsage, whyUsage},
			{exitUnreachable, "the broker cannot be reached, or refuses its user"},
		},
		"bench": {
			{exitOK, "all operations were done"}, {exitUsage, whyUsage},
			{exitIncomplete, "operations have failed, or the output cannot be written"},
			{exitUnreachable, "the server, or what URL names, cannot be reached"}, {exitInterrupted, whySignal},
		},
		"doctor": {
			{exitOK, "all is well"}, {exitUsage, "the URL is wrong"}, {exitIncomplete, "a step has failed, but what URL names is there"},
			{exitUnreachable, "the server cannot be reached, or what URL names is not there"}, {exitInterrupted, whySignal},
		},
		"top": {
			{exitOK, "shown until the end, or until a signal"}, {exitUsage, whyUsage}, {exitIncomplete, whyOutput},
			{exitUnreachable, "no answer the first time, or not that of a live view"},
		},
		"ctl": {
			{exitOK, "done"}, {exitUsage, whyUsage}, {exitIncomplete, "there is no such client, the server has refused, or it is not in service"},
			{exitUnreachable, "there is no server to ask, or several"}, {exitInterrupted, whySignal},
		},
		"cache": {
			{exitOK, "done; of verify: all is what was written"},
			{exitUsage, "the arguments or the configuration are wrong, or there is no cache that this user may use; nothing was done"},
			{exitIncomplete, "entries are damaged or not there, another process has the directory, or the output cannot be written"}, {exitInterrupted, whySignal},
		},
		"man":        {{exitOK, "the pages are made"}, {exitUsage, whyUsage}, {exitIncomplete, "a page cannot be written"}},
		"completion": printed("the script is printed"),
		"urls":       printed("printed"),
		"version":    printed("the version is printed"),
	}
	for command, why := range map[string]string{
		"sync": "DEST is what SOURCE is", "rm": "all is gone", "ls": "all is listed", "stat": "all is shown", "cat": "all was written",
		"find": "all was looked at, whether or not something was found", "du": "all is summed up", "df": "all is shown", "scan": "all is counted",
	} {
		all[command] = done(why)
	}
	all["job"], all["grep"], all["snapshots"] = jobEndings(), grepEndings(), snapshotsEndings()
	all["backup"], all["restore"] = backupEndings(), restoreEndings()
	all["mount"], all["umount"] = mountEndings()
	for _, verb := range strings.Fields("mkdir rmdir mv ln touch chmod chown") {
		all[verb] = done("all was done")
	}
	return all
}

// mountEndings are those of mount and umount, which are mount(8)'s.
func mountEndings() (mount, umount []ending) {
	return []ending{
			{exitOK, "it is mounted, and answers; with bg, it may still be trying; in the foreground: it was unmounted, and all is stable"},
			{exitUsage, "the arguments are wrong, DIR will not do, or this user may not mount there; nothing was mounted"},
			{exitSystem, "this host cannot mount: no /dev/fuse, no fusermount3, no CAP_SYS_ADMIN; or, in the foreground, something could not be made stable"},
			{exitMount, "the server cannot be reached, does not export what SPEC names, or refuses; or an nfsbox is mounted at DIR already"}, {exitInterrupted, whySignal},
		}, []ending{
			{exitOK, "all is unmounted, and stable"}, {exitUsage, "no nfsbox is mounted there, or another user has mounted it"},
			{exitIncomplete, "it is in use, or something could not be made stable; each is named"}, {exitInterrupted, whySignal},
		}
}

// jobEndings are those of job.
func jobEndings() []ending {
	return []ending{
		{exitOK, "done; of resume: the copy is complete"},
		{exitUsage, "the arguments are wrong, there is no such job, or its state does not allow it; nothing was done"},
		{exitIncomplete, "a record cannot be read, a run does not do what it was told, or cannot be written to; of resume as of cp"},
		{exitUnreachable, "of resume: " + whyUnreachable}, {exitInterrupted, whySignal},
	}
}

// snapshotsEndings are those of snapshots.
func snapshotsEndings() []ending {
	return []ending{
		{exitOK, "done; of diff: there are no differences"},
		{exitUsage, "the arguments are wrong, or there is no such snapshot; nothing was done"},
		{exitIncomplete, "something in the store is damaged, or has failed, and is named; or another process uses the store"},
		{exitDiffers, "of diff: all was compared, and there are differences"},
		{exitUnreachable, "there is no such store, it cannot be reached, or may not be read"}, {exitInterrupted, whySignal},
	}
}

// restoreEndings are those of restore.
func restoreEndings() []ending {
	return []ending{
		{exitOK, "all was restored, and with --verify is the same"},
		{exitUsage, "the arguments are wrong, or there is no such snapshot; nothing was done"},
		{exitIncomplete, "items have failed, as objects of the store are damaged or PLACE refuses: they are listed, and all others are restored; or another process has the store for itself"},
		{exitUnreachable, "there is no such store, or it or a server cannot be reached"}, {exitInterrupted, whySignal},
	}
}

// describeExits adds to the help of each command what it ends with.
func describeExits(program *kong.Node) {
	all := endings()
	for _, command := range program.Children {
		text := "EXIT STATUS\n"
		for _, e := range all[command.Name] {
			text += fmt.Sprintf("\n  %-5d%s", e.status, e.why)
		}
		for _, n := range append([]*kong.Node{command}, command.Children...) {
			n.Detail = strings.TrimSpace(n.Detail + "\n\n" + text)
		}
	}
}
