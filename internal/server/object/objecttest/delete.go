package objecttest

var deleteTests = []test{
	{"delete/again", func(e *env) {
		e.ok(e.s.Delete(e.ctx(), "never/was"))
		for range 3 {
			e.put("k", []byte("x"))
			e.ok(e.s.Delete(e.ctx(), "k"))
			e.wantNone("k")
			e.ok(e.s.Delete(e.ctx(), "k"))
		}
	}},
	{"delete/neighbours", func(e *env) {
		keys := []string{"a", "a/b", "a/b/c", "ab", "a-b"}
		for _, gone := range keys {
			for _, key := range keys {
				e.put(key, []byte(key))
			}
			e.ok(e.s.Delete(e.ctx(), gone))
			for _, key := range keys {
				if key == gone {
					e.wantNone(key)
				} else {
					e.want(key, []byte(key))
				}
			}
		}
		e.ok(e.s.Delete(e.ctx(), "a/b/c"))
		e.ok(e.s.Delete(e.ctx(), "a/b/c/d"))
	}},
}
