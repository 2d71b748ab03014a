package xdr

// BulkArgs is an [Appender] with one bulk opaque in it, the data of a WRITE.
// What AppendXDR would build in one piece it yields in three, and the transport
// writes them in one vectored write:
//
//	head = AppendHead(head)  // everything before the data, its length included
//	data = Bulk()            // the caller's own bytes, not copied
//	tail = AppendTail(tail)  // the padding and whatever follows
type BulkArgs interface {
	Appender
	AppendHead(b []byte) ([]byte, error)
	Bulk() []byte
	AppendTail(b []byte) ([]byte, error)
}

// Asker is an [Appender] that says how many bytes of data it asks for: the count of a
// READ. Results may have so many bytes more than those of other calls. Arguments that
// do not say it ask for none.
type Asker interface {
	Appender
	Asks() uint32
}

// BulkResult is an [Unmarshaler] with one bulk opaque in it, the data of a
// READ. Before the call, its bulk field holds the buffer that the data shall
// land in; that buffer is the caller's. A call whose results may be long has
// arguments that say so ([Asker]).
//
// DecodeHead consumes everything before the data, the length included, and
// answers where the data goes and how many bytes of it follow on the wire. With
// dst nil there is no data in this result (an error status, say), nothing
// follows, and DecodeTail is not called. [ErrShort] says that the head is longer
// than what was given: call it again, from the start, with more. A length above
// the caller's buffer is a [*LengthError], and the connection cannot go on.
//
// The transport then fills dst[:n], skips the padding, and hands what follows
// to DecodeTail, which also shortens the bulk field to the n bytes that came.
type BulkResult interface {
	Unmarshaler
	DecodeHead(d *Decoder) (dst []byte, n int, err error)
	DecodeTail(d *Decoder) error
}
