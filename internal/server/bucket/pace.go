package bucket

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// slow is why a try was given up whose answer did not get on.
type slow struct{ why string }

func (s *slow) Error() string { return s.why }

// bodyTime is how long so many bytes may take.
func bodyTime(bytes int64) time.Duration { return time.Duration(bytes) * time.Second / slowRate }

// tryTime bounds a try by the bytes that it may move. The context that it returns ends then, and a *slow is its cause.
func tryTime(ctx context.Context, bytes int64) (context.Context, context.CancelFunc) {
	d := baseTime + bodyTime(bytes)
	return context.WithTimeoutCause(ctx, d, &slow{fmt.Sprintf("it was not done after %v", d)})
}

// paced is the body of an answer. It calls giveUp if fewer than slowBytes of it come in a slowTime.
type paced struct {
	io.Reader
	moved  atomic.Int64
	timer  *time.Timer
	giveUp context.CancelCauseFunc
}

// pace watches over body. The caller stops its timer when it has read enough.
func pace(body io.Reader, giveUp context.CancelCauseFunc) *paced {
	p := &paced{Reader: body, giveUp: giveUp}
	p.timer = time.AfterFunc(slowTime, p.look)
	return p
}

func (p *paced) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.moved.Add(int64(n))
	return n, err
}

// look is called at the end of each slowTime.
func (p *paced) look() {
	if n := p.moved.Swap(0); n < slowBytes {
		p.giveUp(&slow{fmt.Sprintf("its answer does not get on: %d bytes in %v", n, slowTime)})
		return
	}
	p.timer.Reset(slowTime)
}
