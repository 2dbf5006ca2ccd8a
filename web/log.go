package web

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden holds for characters that a page must not pass on as they are.
func hidden(c rune) bool {
	switch {
	case c == '\t' || c == '\n':
		return false
	case unicode.IsControl(c):
		return true
	case c >= 0x200B && c <= 0x200F, c >= 0x202A && c <= 0x202E, c >= 0x2060 && c <= 0x2069, c == 0xFEFF:
		return true
	}
	return false
}

// visible is a text from outside as a page may show it: without terminal
// escapes, and with control, bidirectional and zero-width characters as marks.
func visible(text string) string { return stripEscapes(strings.ToValidUTF8(text, "\uFFFD")) }

func decodeRune(s string) (rune, int) { return utf8.DecodeRuneInString(s) }

// escapeLength is the length of the ANSI sequence that s begins with, or 0:
// ESC [ … final byte, ESC ] … BEL or ESC \, or ESC and one character.
func escapeLength(s string) int {
	if len(s) < 2 || s[0] != 0x1b {
		return 0
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
		}
		return len(s)
	case ']':
		for i := 2; i < len(s); i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
		}
		return len(s)
	}
	return 2
}
