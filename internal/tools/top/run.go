package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/server/view"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// Options say what Run shows, and how. URL and Out are required.
type Options struct {
	URL    string
	Client *http.Client // http.DefaultClient if nil
	Out    io.Writer
	Once   bool // show one Frame and end
	JSON   bool // a Frame a line, and a summary

	// Every is the time from one Frame to the next; 0: as often as the server makes them.
	// It is kept between minPause and maxPause.
	Every time.Duration

	// Size is the size of the terminal Out; nil: Out is no terminal, and gets no escape
	// sequences. Resized, if not nil, receives when the size has changed.
	Size    func() (width, height int)
	Resized <-chan struct{}
	Keys    <-chan Key // that were pressed, if Out is a terminal; nil: there are none
	Colour  bool
	Zone    *time.Location // of the times of day; UTC if nil
}

// Run shows a server until ctx ends, which is no error. Without Once, a server that has answered
// before is asked again when it does not. The errors are ErrUsage, ErrUnreachable, and those of
// Out.
func Run(ctx context.Context, o Options) (err error) {
	feed, err := NewFeed(o.URL, o.Client)
	if err != nil {
		return err
	}
	s := newShow(&o)
	if err := s.begin(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	for seen := false; ; {
		f, err := feed.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (o.Once || !seen):
			return err
		case err != nil:
			if err := s.lost(err); err != nil {
				return err
			}
		default:
			seen = true
			if err := s.frame(f); err != nil {
				return err
			}
		}
		if o.Once {
			return nil
		}
		if more, err := s.wait(ctx, o.pause(f)); err != nil || !more {
			return err
		}
	}
}

// pause is the time to the next Frame.
func (o *Options) pause(f *view.Frame) time.Duration {
	if f == nil {
		return lostPause
	}
	if o.Every > 0 {
		return min(max(o.Every, minPause), maxPause)
	}
	every := min(max(f.Every, 0), maxPause.Seconds())
	return max(time.Duration(every*float64(time.Second)), minPause)
}

// show writes Frames as the options say.
type show struct {
	o      *Options
	screen bool // a terminal, which is redrawn
	last   *view.Frame
	why    string // why the last Frame is old; "": it is not
	frames uint64
	errors uint64
	look   Look
}

func newShow(o *Options) *show {
	return &show{o: o, screen: o.Size != nil && !o.Once && !o.JSON}
}

// The escape sequences: enter a screen of its own without cursor and wrapping, and leave it;
// move to the top; clear to the end of the line, and of the screen.
const (
	enter     = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leave     = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	home      = "\x1b[H"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J"
)

func (s *show) write(text string) error {
	_, err := io.WriteString(s.o.Out, text)
	return err
}

func (s *show) begin() error {
	if !s.screen {
		return nil
	}
	return s.write(enter)
}

func (s *show) end() error {
	switch {
	case s.o.JSON:
		return s.json("summary", struct {
			Frames uint64 `json:"frames"`
			Errors uint64 `json:"errors"`
		}{s.frames, s.errors})
	case s.screen:
		return s.write(leave)
	}
	return nil
}

func (s *show) frame(f *view.Frame) error {
	s.last, s.why = f, ""
	s.frames++
	switch {
	case s.o.JSON:
		now := *f
		now.Points = []view.Point{} // earlier points were written before
		return s.json("frame", &now)
	case s.screen:
		return s.draw()
	case s.o.Once:
		w := Screen{Width: maxWidth, Colour: s.o.Colour && s.o.Size != nil, Zone: s.o.Zone}
		if s.o.Size != nil {
			w.Width, _ = s.o.Size()
		}
		return s.write(strings.Join(Lines(f, w), "\n") + "\n")
	}
	return s.write(s.line(f))
}

// line is a Frame on one line, for an output that is no terminal.
func (s *show) line(f *view.Frame) string {
	zone := s.o.Zone
	if zone == nil {
		zone = time.UTC
	}
	return fmt.Sprintf("%s  ops/s %s  p50 %s  p99 %s  sent %s  received %s  errors/s %s  clients %d  threads %d  waiting %d\n",
		f.At.In(zone).Format(time.TimeOnly), number(f.Total.Rate), seconds(f.Total.P50), seconds(f.Total.P99), rate(f.Total.Out), rate(f.Total.In),
		number(f.Total.Errors), f.Conns.Clients, f.Process.Threads, f.Gate.Waiting)
}

// lost shows that no Frame came.
func (s *show) lost(err error) error {
	s.why = progress.Clean(err.Error())
	s.errors++
	switch {
	case s.o.JSON:
		return s.json("error", struct {
			Error fault.JSON `json:"error"`
		}{fault.JSON{Code: fault.Code(err), Message: fault.Text(err)}})
	case s.screen:
		return s.draw()
	}
	return s.write(s.why + "\n")
}

func (s *show) draw() error {
	width, height := s.o.Size()
	w := Screen{Width: width, Height: max(height, 1), Colour: s.o.Colour, Zone: s.o.Zone, Look: s.look}
	lines := Lines(s.last, w)
	if s.why != "" {
		why := cut(s.why, max(width, 1))
		lines = append([]string{why}, lines[:min(len(lines), w.Height-1)]...)
	}
	return s.write(home + strings.Join(lines, clearLine+"\r\n") + clearLine + clearRest)
}

// wait waits for d, and redraws when the terminal's size changes or a key asks for it. more is
// false if the user wants to end.
func (s *show) wait(ctx context.Context, d time.Duration) (more bool, err error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return true, nil
		case <-timer.C:
			return true, nil
		case k, open := <-s.o.Keys:
			switch {
			case !open:
				s.o.Keys = nil
				continue
			case !s.press(k):
				return false, nil
			}
		case _, open := <-s.o.Resized:
			if !open {
				s.o.Resized = nil
				continue
			}
		}
		if s.screen && s.last != nil {
			if err := s.draw(); err != nil {
				return true, err
			}
		}
	}
}

// json writes an object with the fields of v and its type.
func (s *show) json(kind string, v any) error {
	line, err := progress.AppendObject(nil, time.Now(), kind, v)
	if err != nil {
		return err
	}
	return s.write(string(line))
}
