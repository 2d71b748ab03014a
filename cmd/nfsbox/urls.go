package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/tools/manual"
)

type urlsCmd struct{}

// Help is what Run prints, so that nfsbox help urls, nfsbox urls and nfsbox-urls(1) are one.
func (*urlsCmd) Help() string {
	var b strings.Builder
	for _, s := range urlSections() {
		if s.title != "" {
			b.WriteString(strings.ToUpper(s.title) + "\n\n")
		}
		b.WriteString(s.text + "\n\n")
	}
	for _, a := range nfsbox.URLArgs() {
		writeArg(&b, argForm(a), a.Help)
	}
	b.WriteString("\n  nfsbox ls 'nfs://filer/export/home?uid=1000&gid=1000'\n  nfsbox cp 'nfs://[2001:db8::1]:20049/export/*.jpg' .\n  nfsbox urls\n")
	return strings.TrimRight(b.String(), "\n")
}

func (c *urlsCmd) Run(e *env) error {
	text := c.Help() + "\n"
	if e.size != nil {
		text = manual.LaidOut(text, e.helpColumns())
	}
	if _, err := io.WriteString(e.stdout, text); err != nil {
		return &outputError{err}
	}
	return nil
}

// urlSection is a section of what there is to say about URLs.
type urlSection struct{ title, text string }

// urlSections are all, the last of which is about arguments, and goes on with these. Indented lines keep
// their breaks. docs/urls.md has the same.
func urlSections() []urlSection {
	return []urlSection{
		{"", `A place of a server is a URL, as libnfs has them:

  nfs://HOST[:PORT]/EXPORT/PATH[?ARG=VALUE&...]

HOST is a name or an address, of IPv6 in brackets. PORT serves NFS and MOUNT alike, and leaves the portmapper
out. As much of /EXPORT/PATH is mounted as the server mounts; the rest is looked up, so that a URL names
any directory or file. In it %XX stands for a byte; a question mark has to be written so: %3F.`},
		{"Host and path", `HOST:/EXPORT/PATH and [ADDRESS]:/EXPORT/PATH, as mount(8) has them, are nfs://HOST/EXPORT/PATH, without
arguments, and with nothing escaped; patterns are those of URLs. A path of this host that is there wins:
HOST:/EXPORT/PATH is that file, if there is one of this very name. With a slash before the colon, as in
./HOST:/PATH, it is always a path of this host, and so on Windows is one with a drive.`},
		{"Stores and snapshots", `A store, which nfsbox backup writes to, is a directory of this host or of a server, or a part of a bucket:

  /backup
  nfs://HOST/EXPORT/PATH[?ARG=VALUE&...]
  s3://BUCKET[/PREFIX][?endpoint=URL&region=NAME&path-style=true|false]

An s3:// URL has no credentials: they come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, from
~/.aws/credentials, or from the instance. Without endpoint= it is AWS_ENDPOINT_URL, or AWS. In a shell it needs
quotes, because of the &.

What a store keeps is a place, too, as far as nothing is to be changed there:

  STORE::NAME[@ID][/PATH]

NAME alone is the newest complete snapshot of that name; an incomplete one is named by its ID alone. nfsbox
snapshots ls STORE lists them. Of ID the beginning will do, from 4 characters on, if one snapshot of NAME alone has
it. PATH is as it is typed: nothing in it is escaped, and there are no patterns.
What is there by the very name wins, and so does a path of this host if STORE is no directory. cp -r of a
snapshot itself makes a directory NAME.

  nfsbox ls /backup::home/ann
  nfsbox cp -r /backup::home@20261128t230000.000z/ann .
  nfsbox verify nfs://filer/export/home /backup::home
  nfsbox ls 's3://backups/host7?region=eu-central-1::home/ann'`},
		{"Buckets", `Without ::NAME an s3:// URL is a place among the plain objects of a bucket, for cp, sync, verify, and all that
reads, rm and mkdir. In PATH %XX is a byte of a name, and there are no patterns.

  s3://BUCKET[/PATH][?endpoint=URL&region=NAME&path-style=true|false]

  nfsbox cp -r /home/ann 's3://copies/ann?endpoint=http://minio:9000'`},
		{"Patterns", `In the path of a URL *, [ and ? (as %3F) stand for names that are there, as a shell has them, and with a
slash behind them for directories alone. Names that begin with a dot need a pattern that does. Escaped, as
%2A and %5B, they stand for themselves. So they do in the name of what is to be made: of mkdir, and of the
DEST of mv and ln. cp and verify know no patterns.`},
		{"Arguments", `Of arguments several stand with & between them, as in nfs://filer/export?uid=1000&gid=100&readonly. One that
is unknown, given twice or not built yet is an error. The flags --max-load, --nconnect, --localio and
--localio-dir of a command stand above what its URLs say.`},
	}
}

// argForm is an argument as it is written.
func argForm(a nfsbox.URLArg) string {
	if a.Value == "" {
		return a.Name
	}
	return a.Name + "=" + a.Value
}

// The columns of the list of arguments: where texts begin, and where they have ended.
const (
	argText = 24
	argEnd  = 76 // with the four columns by which help indents it, 80
)

// writeArg writes an argument and its text, in lines that fit.
func writeArg(b *strings.Builder, form, text string) {
	line := fmt.Sprintf("  %-*s", argText-len("  "), form)
	if len(line) > argText || strings.HasSuffix(line, form) {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		line = strings.Repeat(" ", argText)
	}
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(word) > argEnd {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = strings.Repeat(" ", argText)
		}
		line += word + " "
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}
