package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// uploadVerb stores the files of a dataset, which stay.
var uploadVerb = verb{
	name: "upload", size: DefaultFileSize, count: DefaultFiles, anywhere: true, files: true, start: startUpload,
	calls: [2][]string{{"CREATE"}, {"Put", "Upload"}},
}

func startUpload(ctx context.Context, o *Options) (work, error) {
	w, err := startFiles(ctx, o, true)
	if err != nil {
		return nil, err
	}
	w.one, w.last = upload, removeWarmUp
	return w, nil
}

// upload stores the next file. The warm-up has files of its own, so that those of
// the dataset are as new to the server as they should be.
func upload(ctx context.Context, c *fileCaller) (moved, error) {
	w := c.w
	x := w.warmUpItem
	if w.measured {
		x = w.item
	}
	to := x()
	if err := w.dirs[to.dir].upload(ctx, to.name, to.data); err != nil {
		return moved{}, err
	}
	return moved{bytes: uint64(len(to.data))}, nil
}

func (w *fileWork) warmUpItem() item {
	return w.data.item(firstWarmUp + (w.next.Add(1)-1)%warmUpFiles)
}

// removeWarmUp removes what the warm-up has made, and the dataset's directories if
// nothing is in them.
func removeWarmUp(ctx context.Context, w *fileWork) error {
	made := w.warmed
	if !w.measured {
		made = w.next.Load()
	}
	var all error
	for i := range min(made, warmUpFiles) {
		x := w.data.item(firstWarmUp + i)
		if err := w.dirs[x.dir].remove(ctx, x.name, false); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, fmt.Errorf("%s/%s is left behind: %w", dirName(x.dir), x.name, err))
		}
	}
	return errors.Join(all, removeEmpty(ctx, w))
}
