package progress

import "testing"

// TestColumns counts the columns of names as a terminal shows them.
func TestColumns(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "plain.txt": 9, "Grüße": 5, "世界": 4, "한국": 4, "ｆｕｌｌ": 8, "ｶﾅ": 2, "🙂 ok": 5, "e\u0301": 1, "か\u3099": 2,
		"עברית": 5, "ไทยที่": 4, "\u2764": 1, "\u2764\ufe0f": 2, "⌚": 2, "⌘": 1, "𝒜": 1, "𠀀": 2, "\u0153": 1,
	} {
		if got := Columns(s); got != want {
			t.Errorf("%q takes %d columns, want %d", s, got, want)
		}
	}
}
