package templates

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/a-h/templ"
)

// Untrusted renders text that a model, a tool or a stranger's file wrote. It
// becomes text nodes only; characters that could reorder or hide what stands
// around them (bidirectional controls, zero-width and control characters) are
// shown as marks that name their code point.
func Untrusted(s string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		if !strings.ContainsFunc(s, hidden) {
			_, err := io.WriteString(w, templ.EscapeString(s))
			return err
		}
		_, err := io.WriteString(w, markHidden(s))
		return err
	})
}

// Plain is Untrusted for places that take text only, such as a title: hidden
// characters are written as ⟨U+202E⟩.
func Plain(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func markHidden(s string) string {
	var b strings.Builder
	start := 0
	for i, r := range s {
		if !hidden(r) {
			continue
		}
		b.WriteString(templ.EscapeString(s[start:i]))
		fmt.Fprintf(&b, `<span class="cp" title="%s">U+%04X</span>`, hiddenName(r), r)
		start = i + len(string(r))
	}
	b.WriteString(templ.EscapeString(s[start:]))
	return b.String()
}

// hidden reports whether r changes or hides its surroundings when drawn.
func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == '\r':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0: // C0 and C1 controls, escape sequences among them
		return true
	case r == 0xad, r == 0x61c, r == 0x180e, r == 0xfeff, r == 0x2028, r == 0x2029:
		return true
	case r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	case r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe007f: // interlinear marks, tags
		return true
	}
	return unicode.Is(unicode.Cf, r)
}

func hiddenName(r rune) string {
	switch {
	case r == 0x1b:
		return "escape character"
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return "control character"
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x61c:
		return "bidirectional control"
	case r >= 0xe0000 && r <= 0xe007f:
		return "invisible tag character"
	case r == 0xfeff, r >= 0x200b && r <= 0x200d, r == 0x2060:
		return "zero-width character"
	}
	return "invisible character"
}
