package nfsclient

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
)

// TestSilenceOfFirstConnection has a server that takes a connection late, or never.
// That it does not answer is told by the name that the user gave, once; and that it
// does.
func TestSilenceOfFirstConnection(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		err   error
		want  []bool // Over of each that is told
	}{
		"soon":          {after: oncrpc.SilentAfter - time.Second},
		"late":          {after: oncrpc.SilentAfter + time.Second, want: []bool{false, true}},
		"refused":       {after: oncrpc.SilentAfter - time.Second, err: errors.New("refused")},
		"late, refused": {after: oncrpc.SilentAfter + time.Second, err: errors.New("refused"), want: []bool{false}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				near, far := net.Pipe()
				t.Cleanup(func() { _, _ = near.Close(), far.Close() }) // a pipe's never fails
				var told []bool
				o := Options{Host: "filer", Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
					time.Sleep(c.after)
					return near, c.err
				}}
				o.Silent = func(s oncrpc.Silence) {
					told = append(told, s.Over)
					if s.Server != "filer:2049" || !s.Since.Equal(began) || s.Over != s.Until.IsZero() {
						t.Errorf("told %+v", s)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), maxDial)
				defer cancel()
				if _, err := o.dialFirst(ctx, nfsPort); !errors.Is(err, c.err) {
					t.Errorf("error %v", err)
				}
				if len(told) != len(c.want) || len(told) == 2 && (told[0] || !told[1]) {
					t.Errorf("told %v, want %v", told, c.want)
				}
			})
		})
	}
}
