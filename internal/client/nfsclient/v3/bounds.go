package v3

import "time"

const (
	// MaxTransfer bounds one READ or WRITE, whatever the server and the options say. At the
	// bound a request is cut short, and the caller continues after it.
	MaxTransfer = 8 << 20

	// DefaultTransfer is the size of READ and WRITE if the options name none and the server
	// allows it.
	DefaultTransfer = 1 << 20

	// fallbackTransfer is accepted by every server: NFSv2's only size. It is used if a server
	// refuses FSINFO, or gives a limit of 0.
	fallbackTransfer = 8 << 10

	// DefaultPage is the size of the first page of a listing, in bytes on the wire, unless
	// the caller or the options want smaller ones. It holds some hundred entries, and comes
	// soon. Later pages double while the server is quick. It is a little less than a power of
	// two, so that the whole record still fits into a buffer of that size.
	DefaultPage = 63 << 10

	// minPage is the smallest page that is asked for: one entry with the longest name, a
	// handle and attributes fits. A smaller wish of a caller becomes this.
	minPage = 1024

	// maxPage bounds the page that a server is asked for. If not one entry of a directory
	// fits, that is vfs.ErrTooSmall.
	maxPage = 16 * DefaultPage

	// After a page that takes at most quickPage the next is twice as large. After one that
	// takes longer than slowPage it is half as large, and this listing does not ask for the
	// slow size or a larger one again. If halving does not help, the size stays: such a
	// server takes its time for the page, not for its entries.
	quickPage = 500 * time.Millisecond
	slowPage  = 2 * time.Second

	// hardPlace bounds how long a hard call without a reply keeps others from the server. After
	// that one more call is let in, as if this one had ended. A server may answer all calls but
	// those for some object.
	hardPlace = time.Minute

	// pagePatience bounds a page, with all tries of the call and all pauses between them. At
	// the bound a page of smallPage is asked for instead. Pages of smallPage or less may take
	// what the client's time-outs allow, and are not made smaller if they are slow.
	pagePatience = 30 * time.Second
	smallPage    = DefaultPage / 8

	// maxConcessions bounds how often in a row the same page is asked for in another way:
	// larger, smaller, without attributes. At the bound a further refusal is the error.
	maxConcessions = 16

	// maxEmptyPages bounds the pages in a row without an entry and without the end; after
	// each a larger one is asked for. At the bound it is a ReplyError.
	maxEmptyPages = 4

	// maxRetries is how often a listing asks again from its last cookie, each time with a new
	// verifier, before it begins again because the cookie was refused.
	maxRetries = 3

	// maxBarren bounds how often in a row a listing begins again without getting further than
	// before. At the bound it ends with vfs.ErrBadCookie.
	maxBarren = 8

	// maxExact bounds the delivered names that a listing remembers one by one, in case it has
	// to begin again: 8 bytes a name, in chunks of chunkNames. At the bound it keeps
	// landmarks instead: between half of and all of maxLadder names at even distances, and
	// the last maxRing names.
	maxExact   = 1 << 20
	chunkNames = 1 << 10
	maxLadder  = 1 << 12
	maxRing    = 1 << 12

	// minOrder is how many landmarks must be met, all in the order in which they were
	// delivered, before a listing that began again assumes that the server has kept its
	// order. By chance they come so once in 16! = 2e13 times.
	minOrder = 16

	// plusBusy bounds how long a READDIRPLUS is repeated while the server answers
	// NFS3ERR_JUKEBOX, hard or soft. At the bound READDIR lists the directory.
	plusBusy = 15 * time.Second

	// busyMin is the pause after the first NFS3ERR_JUKEBOX. It doubles up to busyMax, which is
	// Linux' only pause. Each is shortened by up to half, at random, so that clients do not
	// come back together. A soft call that gets this answer when its patience has passed is
	// vfs.ErrBusy.
	busyMin = 100 * time.Millisecond
	busyMax = 5 * time.Second

	// maxGroups is how many supplementary groups AUTH_SYS carries (RFC 5531, appendix A). Of
	// more groups the first 16 are sent.
	maxGroups = 16

	// maxViews bounds the cache of views. At the bound it starts anew; existing views go on
	// working.
	maxViews = 256

	// maxCreateTries bounds how often Open tries CREATE and LOOKUP in turn, for a name that
	// others create and remove meanwhile. At the bound it is vfs.ErrBusy.
	maxCreateTries = 8

	// closeTime bounds the REMOVE with which the last Close ends a file that was removed while
	// open: Close's own context may have ended.
	closeTime = 10 * time.Second
)
