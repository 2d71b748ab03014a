package v3

import "time"

const (
	// MaxTransfer bounds one READ or WRITE, whatever the server and the options
	// say. A longer request is cut, and the caller goes on behind it.
	MaxTransfer = 8 << 20

	// DefaultTransfer is the size of READ and WRITE where the options name none
	// and the server allows it.
	DefaultTransfer = 1 << 20

	// fallbackTransfer is what every server takes: NFSv2's only size. It is
	// used if a server refuses FSINFO, or gives a limit of 0.
	fallbackTransfer = 8 << 10

	// DefaultPage is the size of one page of a listing, in bytes on the wire,
	// where neither the caller nor the options name one.
	DefaultPage = 128 << 10

	// minPage is the smallest page that is asked for: one entry with the longest
	// name, a handle and attributes fits. A caller's smaller wish becomes this.
	minPage = 1024

	// maxPage bounds the page that a server is asked for. A directory of which
	// a page of this size holds not one entry is vfs.ErrTooSmall.
	maxPage = 1 << 20

	// maxEmptyPages is how many pages in a row may hold no entry and no end;
	// each is asked for again, larger. One more is a ReplyError.
	maxEmptyPages = 4

	// maxBusyTries is how often a call is made while the server answers
	// NFS3ERR_JUKEBOX. Then the error is vfs.ErrBusy; that is after about 20 s.
	maxBusyTries = 10

	// busyMin is the pause after the first NFS3ERR_JUKEBOX. It doubles up to
	// busyMax, and each pause is shortened by up to half, at random, so that
	// many clients do not come back at once.
	busyMin = 100 * time.Millisecond
	busyMax = 5 * time.Second

	// maxGroups is how many further groups AUTH_SYS carries (RFC 5531, appendix
	// A). Of a caller with more the first 16 are sent.
	maxGroups = 16

	// maxViews bounds the cache of views. At the bound it starts anew; old
	// views go on working for those who hold them.
	maxViews = 256

	// maxCreateTries is how often Open tries CREATE and LOOKUP in turn, for a
	// name that others create and remove meanwhile. Then it is vfs.ErrBusy.
	maxCreateTries = 8

	// closeTime bounds the REMOVE with which the last Close ends a file that was
	// removed while open; Close's own context may have ended by then.
	closeTime = 10 * time.Second
)
