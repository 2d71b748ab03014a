package bench

import (
	"context"
	"errors"
)

// downloadVerb reads the files that upload has made, and compares every byte.
var downloadVerb = verb{
	name: "download", size: DefaultFileSize, count: DefaultFiles, anywhere: true, files: true, start: startDownload,
	calls: [2][]string{{"LOOKUP"}, {"Get", "Download"}},
}

func startDownload(ctx context.Context, o *Options) (work, error) {
	return startOnFiles(ctx, o, download)
}

// startOnFiles is the start of a verb that wants to find the files.
func startOnFiles(ctx context.Context, o *Options, one func(context.Context, *fileCaller) (moved, error)) (work, error) {
	w, err := startFiles(ctx, o, false)
	if err != nil {
		return nil, err
	}
	w.one = one
	if err := w.look(ctx); err != nil {
		return nil, errors.Join(err, cleanUp(ctx, w))
	}
	return w, nil
}

func download(ctx context.Context, c *fileCaller) (moved, error) {
	w := c.w
	if c.buf == nil {
		c.buf = make([]byte, w.data.size)
	}
	x := w.item()
	if err := w.dirs[x.dir].download(ctx, x.name, x.data, c.buf); err != nil {
		return moved{}, err
	}
	return moved{bytes: uint64(len(x.data))}, nil
}
