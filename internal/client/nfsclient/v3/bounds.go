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

	// DefaultPage is the size of the first page of a listing, in bytes on the
	// wire, unless the caller or the options want smaller ones: enough for some
	// hundred entries, and soon there. Pages double from here while the server
	// is quick. A power of two, less a little: what stands around a page in its
	// record then still fits into a buffer of that power of two.
	DefaultPage = 63 << 10

	// minPage is the smallest page that is asked for: one entry with the longest
	// name, a handle and attributes fits. A caller's smaller wish becomes this.
	minPage = 1024

	// maxPage bounds the page that a server is asked for. A directory of which
	// a page of this size holds not one entry is vfs.ErrTooSmall.
	maxPage = 16 * DefaultPage

	// A page that takes at most quickPage makes the next one twice as large. One
	// that takes longer than slowPage makes it half as large, and neither the
	// size that was slow nor a larger one is asked for again in this listing.
	// Where halving does not help, the size stays: such a server takes its time
	// for the page, not for its entries.
	quickPage = 500 * time.Millisecond
	slowPage  = 2 * time.Second

	// pagePatience is how long a page may take, all tries of the call and all
	// pauses between them included, before it is given up and a page of
	// smallPage asked for. Pages of smallPage or less may take what the client's
	// time-outs allow, and slow ones do not become smaller.
	pagePatience = 30 * time.Second
	smallPage    = DefaultPage / 8

	// maxConcessions is how often in a row the same page is asked for in another
	// way: larger, smaller, without attributes. One more refusal is the error.
	maxConcessions = 16

	// maxEmptyPages is how many pages in a row may hold no entry and no end;
	// each is asked for again, larger. One more is a ReplyError.
	maxEmptyPages = 4

	// maxRetries is how often the last entry is asked for once more, each time
	// with a new verifier, before a listing whose cookie was refused begins again.
	maxRetries = 3

	// maxBarren is how often in a row a listing whose cookie was refused may
	// begin again without getting further than it was. Then it ends with
	// vfs.ErrBadCookie.
	maxBarren = 8

	// maxExact is how many names that were delivered a listing remembers one by
	// one, for the case that it has to begin again: 8 bytes a name, taken in
	// chunks of chunkNames. Beyond it are kept landmarks: between half of and
	// all of maxLadder names at even distances, and the last maxRing names.
	maxExact   = 1 << 20
	chunkNames = 1 << 10
	maxLadder  = 1 << 12
	maxRing    = 1 << 12

	// minOrder is how many landmarks have to be met, all in the order in which
	// they were delivered, before a listing that began again believes that the
	// server has kept its order. By accident they come so once in 16! = 2e13.
	minOrder = 16

	// plusBusy is how long a READDIRPLUS is made while the server answers
	// NFS3ERR_JUKEBOX, hard or soft. Then READDIR lists the directory.
	plusBusy = 15 * time.Second

	// busyMin is the pause after the first NFS3ERR_JUKEBOX. It doubles up to
	// busyMax, which is Linux' only one, and each pause is shortened by up to half,
	// at random, so that many clients do not come back at once. A soft call that is
	// still answered so when its patience has passed is vfs.ErrBusy.
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
