package studyfile_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"alidade/ablation"
	"alidade/ablation/studyfile"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestBrokenFiles holds each broken study file against the error it promises.
func TestBrokenFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("found %d broken files (%v), want at least 20", len(files), err)
	}
	var got bytes.Buffer
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(f)
		_, err = studyfile.Decode(name, src)
		if err == nil {
			t.Errorf("%s decodes without an error", name)
			continue
		}
		fmt.Fprintf(&got, "%s\n\n", err)
	}
	golden := "testdata/broken.golden"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("errors differ (-want +got):\n%s", diff)
	}
}

// TestBrokenFilesNameTheLine: every message starts with file and line.
func TestBrokenFilesNameTheLine(t *testing.T) {
	src := []byte("name: t\nseeds: [1]\nbase:\n  algorithm:\n    lr: fast\n")
	_, err := studyfile.Decode("s.yaml", src)
	if err == nil || !strings.HasPrefix(err.Error(), "s.yaml:5: base.algorithm.lr:") {
		t.Errorf("Decode = %v, want an error at s.yaml:5 for base.algorithm.lr", err)
	}
}

// TestExamplesRoundTrip: each example decodes, and its canonical form decodes
// to the same study and encodes to the same bytes.
func TestExamplesRoundTrip(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("found %d examples (%v), want at least 6", len(files), err)
	}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		st, err := studyfile.Decode(f, src)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		roundTrip(t, f, st)
	}
}

// TestTemplatesRoundTrip does the same for every study template.
func TestTemplatesRoundTrip(t *testing.T) {
	for _, tpl := range ablation.Templates() {
		roundTrip(t, tpl.ID, tpl.Study)
	}
}

// TestAwkwardTextsRoundTrip: names, questions and notes with characters that
// YAML gives a meaning to.
func TestAwkwardTextsRoundTrip(t *testing.T) {
	for _, q := range []string{"yes", "no", "null", "~", "1e3", "0x10", "a: b", "- x", "# c", "tab\there", "two\nlines\n", `quote " and \`, "ünïcode → ⌘", "'", "{a}", " lead", "trail ", "2022-03-01", "!tag", "\x01"} {
		st := ablation.Templates()[0].Study
		st.Question, st.Notes = q, q
		roundTrip(t, fmt.Sprintf("%q", q), st)
	}
}

func roundTrip(t *testing.T, name string, st ablation.Study) {
	t.Helper()
	out, err := studyfile.Encode(st)
	if err != nil {
		t.Errorf("%s: Encode: %v", name, err)
		return
	}
	back, err := studyfile.Decode(name, out)
	if err != nil {
		t.Errorf("%s: canonical form does not decode: %v\n%s", name, err, out)
		return
	}
	if diff := cmp.Diff(st, back); diff != "" {
		t.Errorf("%s: study changed on the way (-before +after):\n%s", name, diff)
	}
	again, _ := studyfile.Encode(back)
	if !bytes.Equal(out, again) {
		t.Errorf("%s: second encoding differs:\n%s\n%s", name, out, again)
	}
}

func FuzzDecode(f *testing.F) {
	files, _ := filepath.Glob("testdata/broken/*.yaml")
	more, _ := filepath.Glob("../../examples/*.yaml")
	for _, p := range append(files, more...) {
		if src, err := os.ReadFile(p); err == nil {
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		st, err := studyfile.Decode("f.yaml", src)
		if err != nil {
			return
		}
		out, err := studyfile.Encode(st)
		if err != nil {
			t.Fatalf("Encode: %v", err)
		}
		if _, err := studyfile.Decode("f.yaml", out); err != nil {
			t.Fatalf("canonical form does not decode: %v\n%s", err, out)
		}
	})
}
