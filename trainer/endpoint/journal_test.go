package endpoint

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTornJournal: a line that a kill cut does not spoil the next one, and a
// turn that is missing ends what can be played again.
func TestTornJournal(t *testing.T) {
	dir := t.TempDir()
	j, past, spent, err := openJournal(dir)
	if err != nil || len(past) != 0 || spent != 0 {
		t.Fatalf("an empty journal: %v, %v, %v", past, spent, err)
	}
	for _, r := range []reply{{Episode: "a", Cost: 1}, {Episode: "a", Turn: 1, Cost: 2, Content: "x\ny"}, {Episode: "b", Cost: 4}} {
		if err := j.add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, journalFile)
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, src[:len(src)-5], 0o644); err != nil {
		t.Fatal(err)
	}
	if j, past, spent, err = openJournal(dir); err != nil || spent != 3 || len(past["a"]) != 2 || len(past["b"]) != 0 {
		t.Fatalf("a cut journal: %v, %v, %v", past, spent, err)
	}
	for _, r := range []reply{{Episode: "b", Cost: 8}, {Episode: "b", Turn: 2, Cost: 16}} {
		if err := j.add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	j, past, spent, err = openJournal(dir)
	if err != nil || spent != 27 || len(past["b"]) != 1 || past["a"][1].Content != "x\ny" {
		t.Errorf("after the cut: %v, %v, %v", past, spent, err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
}
