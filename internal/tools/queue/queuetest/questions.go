package queuetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

func isNobody(err error) bool { return errors.Is(err, queue.ErrNobody) }

// echo answers with what was asked.
func echo(_ context.Context, question []byte) []byte { return append([]byte("re: "), question...) }

func ask(e *env) {
	_, d, t := e.pair()
	e.answer(d, echo)
	for _, q := range []string{"first", "", "third \x00 \xff"} {
		if got := e.asked(t, q); got != "re: "+q {
			e.Errorf("%q is answered by %q", q, got)
		}
	}
}

func askBounds(e *env) {
	_, d, t := e.pair()
	e.answer(d, func(_ context.Context, q []byte) []byte {
		if string(q) == "too much" {
			return make([]byte, queue.MaxMessage+1)
		}
		return q
	})
	longest := strings.Repeat("q", queue.MaxMessage)
	if got := e.asked(t, longest); got != longest {
		e.Errorf("an answer of %d bytes, want %d", len(got), len(longest))
	}
	if got, err := t.Ask(e.ctx, []byte(longest+"q")); !errors.Is(err, queue.ErrTooLong) {
		e.Errorf("a question that is too long: %.20q, %v", got, err)
	}
	if got, err := t.Ask(e.ctx, []byte("too much")); !errors.Is(err, queue.ErrTooLong) || len(got) > 0 {
		e.Errorf("an answer that is too long: %d bytes, %v", len(got), err)
	}
	if got := e.asked(t, "next"); got != "next" {
		e.Errorf("then an answer is %q", got)
	}
}

func askNobody(e *env) {
	_, d, t := e.pair()
	if got, err := t.Ask(e.ctx, nil); !isNobody(err) {
		e.Errorf("before there is anybody: %q, %v", got, err)
	}
	stop := e.answer(d, echo)
	e.asked(t, "there?")
	stop()
	if got, err := t.Ask(e.ctx, nil); !isNobody(err) {
		e.Errorf("when the last is gone: %q, %v", got, err)
	}
}

// askMany wants MaxQuestions to be answered at once, no more, and all in the end.
func askMany(e *env) {
	const questions = queue.MaxQuestions + 20
	j, d, t := e.pair()
	var open atomic.Int64
	all := make(chan struct{})
	enough := sync.OnceFunc(func() { close(all) })
	e.answer(d, func(_ context.Context, q []byte) []byte {
		if string(q) == "there?" {
			return nil
		}
		switch now := open.Add(1); {
		case now == queue.MaxQuestions:
			enough()
		case now > queue.MaxQuestions:
			e.Errorf("%d questions are answered at once", now)
		}
		<-all // and once it is closed, nobody waits
		open.Add(-1)
		return q
	})
	e.asked(t, "there?")
	takers := []queue.Taker{t, e.join(j), e.join(j)}
	var wg sync.WaitGroup
	for i := range questions {
		wg.Go(func() {
			q := fmt.Append(nil, "question ", i)
			if got, err := takers[i%len(takers)].Ask(e.ctx, q); err != nil || !bytes.Equal(got, q) {
				e.Errorf("%s is answered by %q, %v", q, got, err)
			}
		})
	}
	wg.Wait()
}

// askTwoRuns wants each run's coordinator to get its own questions.
func askTwoRuns(e *env) {
	var takers []queue.Taker
	names := []string{"a.b", "a-b", "a_b", "A.b"}
	for _, name := range names {
		j := job(name, e.Name())
		e.answer(e.open(j), func(context.Context, []byte) []byte { return []byte(name) })
		takers = append(takers, e.join(j))
	}
	for i, name := range names {
		if got := e.asked(takers[i], ""); got != name {
			e.Errorf("%s is answered by %s", name, got)
		}
	}
}
