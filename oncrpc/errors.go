package oncrpc

import (
	"errors"
	"fmt"
	"os"

	"github.com/nfsbox/nfsbox/xdr"
)

// ErrTimeout says that no reply came in time. It Is [os.ErrDeadlineExceeded].
var ErrTimeout error = timeoutError{}

type timeoutError struct{}

// Error says what happened.
func (timeoutError) Error() string { return "no reply in time" }

// Timeout returns true, as [net.Error] has it.
func (timeoutError) Timeout() bool { return true }

// Is makes it an [os.ErrDeadlineExceeded].
func (timeoutError) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// ErrClosed is returned by calls on a client that was closed.
var ErrClosed = errors.New("client closed")

// ErrServerClosed is returned by [Server.Serve] after Shutdown or Close.
var ErrServerClosed = errors.New("oncrpc: server closed")

// ErrUnknownOutcome says that a call that must not be sent twice was sent, and got no
// usable reply: it was cancelled or timed out, or its connection was lost. The server may
// or may not have executed it. The error wraps its cause, too.
//
// Any other error of a call that is not repeatable means that the server has not executed
// it, or has answered with an error of its own. An [AcceptError] of SYSTEM_ERR leaves open
// how far the server got.
var ErrUnknownOutcome = errors.New("the server may or may not have executed it")

// ErrNotSent says that the call has never left whole, so that the server cannot have
// executed it. The error wraps its cause, too.
var ErrNotSent = errors.New("the call was not sent")

// ErrNoConnection says that no connection could be had.
var ErrNoConnection = errors.New("no connection")

// ErrBadReply says that what came instead of a reply broke the RPC protocol, in the same
// way each time that the call was sent. The error wraps what is wrong, too.
var ErrBadReply = errors.New("the server's reply breaks the RPC protocol")

// ErrGarbageArgs is a handler's answer to arguments that it cannot decode or cannot make
// sense of. The client receives GARBAGE_ARGS. Errors of package xdr mean the same.
var ErrGarbageArgs = errors.New("oncrpc: garbage arguments")

// ErrDrop is returned by a handler so that no reply is sent.
var ErrDrop = errors.New("oncrpc: drop the call")

// Errors for which a connection is given up.
var (
	errRecordEnd   = errors.New("end of record")
	errEmpties     = fmt.Errorf("record with more than %d empty fragments, and one for each %d bytes", maxEmptyFragments, bytesPerEmpty)
	errNotCall     = errors.New("message to a server is no call")
	errNotReply    = errors.New("message to a client is no reply")
	errCutMessage  = errors.New("record too short for an RPC message")
	errStray       = fmt.Errorf("%d replies in a row to calls never made; the peer is no RPC server", maxStray)
	errNoProgress  = errors.New("connection reads without bytes or error")
	errNotReading  = fmt.Errorf("the server does not take what it is sent: %w", ErrTimeout)
	errNotTaking   = errors.New("the client does not take its replies")
	errRetired     = errors.New("connection retired")
	errBrokenOff   = errors.New("reading was interrupted") // not the end: the reader must look up
	errIdle        = errors.New("connection idle")
	errSlow        = errors.New("request takes too long to arrive")
	errDraining    = errors.New("server is shutting down")
	errEvicted     = errors.New("idle connection closed to make room")
	errDropped     = errors.New("connection closed by the administrator")
	errEarlyData   = errors.New("data sent between STARTTLS and the handshake")
	errExited      = errors.New("handler ended its goroutine")
	errReplyTwice  = errors.New("handler replied twice")
	errConnGone    = errors.New("connection is gone")
	errBulkTooLong = errors.New("more bulk than its buffer holds")
)

// RecordError reports a record longer than allowed, in bytes. The connection is closed.
type RecordError struct {
	Len, Max int64
	// Speaks is the protocol whose first bytes stand where the record's length should,
	// such as HTTP; "": none that is known.
	Speaks string
}

// speaks is the protocol of which a server's first four bytes are; "": none that is known.
func speaks(first uint32) string {
	switch first {
	case 'H'<<24 | 'T'<<16 | 'T'<<8 | 'P':
		return "HTTP"
	case 'S'<<24 | 'S'<<16 | 'H'<<8 | '-':
		return "SSH"
	case '2'<<24 | '2'<<16 | '0'<<8 | ' ', '2'<<24 | '2'<<16 | '0'<<8 | '-':
		return "FTP or SMTP"
	}
	switch first >> 16 {
	case 0x1503, 0x1603: // an alert, or a handshake, of SSL 3.0 or later (RFC 8446, section 5.1)
		return "TLS"
	}
	return ""
}

// Error has the record's length, as far as it is known, and the bound, or the protocol that
// was spoken instead.
func (e *RecordError) Error() string {
	if e.Speaks != "" {
		return "this is " + e.Speaks + ", and no RPC, as NFS is"
	}
	return fmt.Sprintf("record of at least %d bytes, at most %d allowed", e.Len, e.Max)
}

// AcceptStat is the status of an accepted call (accept_stat, RFC 5531, section 9).
type AcceptStat uint32

// Statuses of accepted calls.
const (
	Success      AcceptStat = 0 // the results follow
	ProgUnavail  AcceptStat = 1 // the server does not have the program
	ProgMismatch AcceptStat = 2 // it does not have this version of it
	ProcUnavail  AcceptStat = 3 // it does not have the procedure
	GarbageArgs  AcceptStat = 4 // it cannot decode the arguments
	SystemErr    AcceptStat = 5 // it has failed
)

// String is the name in the RFC, and what it means.
func (s AcceptStat) String() string {
	switch s {
	case Success:
		return "SUCCESS"
	case ProgUnavail:
		return "PROG_UNAVAIL: the server does not have this program"
	case ProgMismatch:
		return "PROG_MISMATCH: the server does not have this version"
	case ProcUnavail:
		return "PROC_UNAVAIL: the server does not have this procedure"
	case GarbageArgs:
		return "GARBAGE_ARGS: the server cannot decode the arguments"
	case SystemErr:
		return "SYSTEM_ERR: the server failed"
	}
	return fmt.Sprintf("accept_stat %d", uint32(s))
}

// AcceptError is the answer of a server that took a call and did not execute it, or failed
// while it did.
type AcceptError struct {
	Stat      AcceptStat
	Low, High uint32 // with ProgMismatch: the versions that the server has; 0 and 0 if it does not say
}

// Error has the status, and the versions that the server has.
func (e *AcceptError) Error() string {
	if e.Stat == ProgMismatch && e.High != 0 {
		return fmt.Sprintf("%v, but %d to %d", e.Stat, e.Low, e.High)
	}
	return e.Stat.String()
}

// RejectStat says why a call was denied (reject_stat, RFC 5531, section 9).
type RejectStat uint32

// Reasons for a denial.
const (
	RPCMismatch  RejectStat = 0 // the server does not speak this version of RPC
	AuthRejected RejectStat = 1 // AUTH_ERROR
)

// AuthStat says what was wrong with a credential (auth_stat, RFC 5531, section 9).
type AuthStat uint32

// What may be wrong with a credential or a verifier.
const (
	AuthOK           AuthStat = 0 // nothing
	AuthBadCred      AuthStat = 1 // the credential is malformed
	AuthRejectedCred AuthStat = 2 // the client must begin a new session
	AuthBadVerf      AuthStat = 3 // the verifier is malformed
	AuthRejectedVerf AuthStat = 4 // the verifier expired or was used before
	AuthTooWeak      AuthStat = 5 // refused for reasons of security
	AuthInvalidResp  AuthStat = 6 // the server's verifier is not valid
	AuthFailed       AuthStat = 7 // for an unknown reason
)

// String is the name in the RFC.
func (s AuthStat) String() string {
	names := [...]string{"AUTH_OK", "AUTH_BADCRED", "AUTH_REJECTEDCRED", "AUTH_BADVERF",
		"AUTH_REJECTEDVERF", "AUTH_TOOWEAK", "AUTH_INVALIDRESP", "AUTH_FAILED"}
	if int64(s) < int64(len(names)) {
		return names[s]
	}
	return fmt.Sprintf("auth_stat %d", uint32(s))
}

// DeniedError is the answer of a server that did not take a call.
type DeniedError struct {
	Stat      RejectStat
	Low, High uint32   // with RPCMismatch: the RPC versions that the server speaks; 0 and 0 if it does not say
	Auth      AuthStat // with AuthRejected
}

// Error has the reason, and what the server says of it.
func (e *DeniedError) Error() string {
	switch e.Stat {
	case RPCMismatch:
		if e.High == 0 {
			return "denied: RPC_MISMATCH: the server does not speak RPC version 2"
		}
		return fmt.Sprintf("denied: RPC_MISMATCH: the server speaks RPC versions %d to %d", e.Low, e.High)
	case AuthRejected:
		return fmt.Sprintf("denied: AUTH_ERROR: %v", e.Auth)
	}
	return fmt.Sprintf("denied: reject_stat %d", uint32(e.Stat))
}

// AuthError is a handler's answer to a credential that it does not take. The client
// receives MSG_DENIED with AUTH_ERROR.
type AuthError struct{ Stat AuthStat }

// Error has the status.
func (e *AuthError) Error() string { return "credential refused: " + e.Stat.String() }

// isGarbage reports whether a handler's error says that the arguments did not decode.
func isGarbage(err error) bool {
	if errors.Is(err, ErrGarbageArgs) || errors.Is(err, xdr.ErrShort) || errors.Is(err, xdr.ErrTrailing) {
		return true
	}
	if _, ok := errors.AsType[*xdr.LengthError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*xdr.ValueError](err); ok {
		return true
	}
	_, ok := errors.AsType[*xdr.DepthError](err)
	return ok
}

// isAnswer reports whether err is what the server said about the call.
func isAnswer(err error) bool {
	if _, ok := errors.AsType[*AcceptError](err); ok {
		return true
	}
	return isDenial(err)
}

// isDenial reports whether err says that the server did not take the call.
func isDenial(err error) bool {
	_, ok := errors.AsType[*DeniedError](err)
	return ok
}
