package bench

import (
	"context"
	"errors"
	"fmt"
)

// uploadVerb stores the files of a dataset, which stay.
var uploadVerb = verb{
	name: "upload", size: DefaultFileSize, count: DefaultFiles, anywhere: true, files: true, start: startUpload,
	calls: [2][]string{{"CREATE"}, {"Put", "Upload", "HTTP PUT"}},
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
	var first error
	left := 0
	for i := range min(made, warmUpFiles) {
		x := w.data.item(firstWarmUp + i)
		err := w.dirs[x.dir].remove(ctx, x.name, false)
		if err == nil || gone(err) {
			continue
		}
		if left++; first == nil {
			first = err
		}
	}
	if first != nil {
		first = fmt.Errorf("%d files of the warm-up are left behind, for nfsbox bench clean: %w", left, first)
	}
	return errors.Join(first, removeEmpty(ctx, w))
}
