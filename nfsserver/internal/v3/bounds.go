package v3

import (
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// MaxTransfer bounds the data of one READ or WRITE, and is what FSINFO
	// announces if the file system takes as much. More is cut: the client sees
	// a short read or write and goes on behind it.
	MaxTransfer = 1 << 20

	// DefaultMaxBulk bounds the memory of data that is being read or waits to
	// be sent, unless Options.MaxBulk says otherwise. At the bound READ and the
	// listings wait, clients in turn, and after maxWait they answer JUKEBOX: a
	// client of Linux then tries again in 5 seconds.
	DefaultMaxBulk = 256 << 20
	maxWait        = 2 * time.Second

	// connBulk bounds what one connection has of that at once: what is read ahead of
	// its socket. It is at most one part in connShare of all. At the bound READ and the
	// listings of that connection wait until the client has received some data, as long
	// as the connection lives. A client must leave free leaves times as much as it
	// has; at that bound its calls wait for its own replies in the same way.
	connBulk  = 16 << 20
	connShare = 8
	leaves    = 3

	// maxPage bounds one page of a listing. A client that asks for more gets
	// this much and asks for the next page.
	maxPage = 1 << 20

	// preferredPage is what FSINFO says a listing is best read in.
	preferredPage = 64 << 10

	// minFill is the least that is asked of the file system for one page, so that any
	// name fits. A client that wants less gets less.
	minFill = 4096

	// maxEntry is what one entry of a page can take: the flag before it,
	// fileid, name, cookie; with READDIRPLUS attributes and handle.
	maxEntry = 4 + 8 + 4 + vfs.MaxName + 1 + 8 + 4 + 84 + 4 + 4 + vfs.MaxHandleV3
)
