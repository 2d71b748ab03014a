//go:build !unix

package oncrpc

const canPeek = false

func (cc *clientConn) alive() bool { return true }
