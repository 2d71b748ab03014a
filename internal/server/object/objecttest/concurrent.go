package objecttest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

var concurrentTests = []test{
	{"concurrent/same-content", func(e *env) {
		// Has all racers store one content: all succeed, and there is one.
		content := random(11, 1000)
		sum := object.SumOf(content)
		var wg sync.WaitGroup
		var stored atomic.Int64
		for range e.c.Racers {
			wg.Go(func() {
				info, did, err := object.PutContent(e.ctx(), e.s, sum, int64(len(content)), bytes.NewReader(content))
				if err != nil || info.Sum != sum {
					e.Errorf("%+v, %v", info, err)
				}
				if did {
					stored.Add(1)
				}
			})
		}
		wg.Wait()
		if stored.Load() != 1 {
			e.Errorf("%d say that they have stored it", stored.Load())
		}
		e.want(object.ContentKey(sum), content)
		e.wantList("", "", 0, []string{object.ContentKey(sum)})
	}},
	{"concurrent/if-absent", func(e *env) {
		// Has the racers compete for a key with contents of their own.
		var wg sync.WaitGroup
		var won atomic.Int64
		winner := -1
		for i := range e.c.Racers {
			wg.Go(func() {
				_, err := e.s.Put(e.ctx(), "lock", strings.NewReader(fmt.Sprint(i)), object.PutOptions{Size: -1, IfAbsent: true})
				switch {
				case err == nil:
					won.Add(1)
					winner = i
				case !errors.Is(err, object.ErrExist):
					e.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			e.Fatalf("%d have won", won.Load())
		}
		e.want("lock", []byte(fmt.Sprint(winner)))
	}},
	{"concurrent/replace", replaceWhileReading},
	{"concurrent/list", listWhileChanging},
}

// replaceWhileReading wants every reader to see one of the versions, whole.
func replaceWhileReading(e *env) {
	version := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, 30_000*(i+1)) }
	e.put("k", version(0))
	var readers, writers sync.WaitGroup
	done := make(chan struct{})
	for i := range 4 {
		writers.Go(func() {
			for range 20 {
				if _, err := e.s.Put(e.ctx(), "k", bytes.NewReader(version(i)), anything); err != nil {
					e.Error(err)
				}
			}
		})
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				r, info, err := e.s.Get(e.ctx(), "k", 0, -1)
				if err != nil {
					e.Error(err)
					return
				}
				got, err := io.ReadAll(r)
				if err = errors.Join(err, r.Close()); err != nil {
					e.Error(err)
					return
				}
				if int64(len(got)) != info.Size || !bytes.Equal(got, version(len(got)/30_000-1)) {
					e.Errorf("%d bytes, of an object of %d: mixed", len(got), info.Size)
					return
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}

// listWhileChanging wants the objects that stay to be listed once each, in order, while
// others come and go.
func listWhileChanging(e *env) {
	var stay []string
	for i := range 60 {
		key := fmt.Sprintf("s%02d/stays", i%7*10+i)
		e.put(key, nil)
		stay = append(stay, key)
	}
	slices.Sort(stay)
	stay = slices.Compact(stay)
	var writers sync.WaitGroup
	done := make(chan struct{})
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				key := fmt.Sprintf("s%02d/goes-%d", i%100, w)
				if _, err := e.s.Put(e.ctx(), key, strings.NewReader("x"), anything); err != nil {
					e.Error(err)
				}
				if err := e.s.Delete(e.ctx(), key); err != nil {
					e.Error(err)
				}
			}
		})
	}
	for round := range 20 {
		var kept []string
		for _, key := range e.list("s", "", 1+round) {
			if strings.HasSuffix(key, "stays") {
				kept = append(kept, key)
			}
		}
		if !slices.Equal(kept, stay) {
			e.Errorf("%q are listed, want %q", kept, stay)
		}
	}
	close(done)
	writers.Wait()
	e.wantList("", "", 0, stay)
}
