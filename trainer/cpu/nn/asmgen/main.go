// Command asmgen writes the assembly kernels of package nn from two templates,
// once for AVX2 and once for AVX-512. In a template V7 stands for vector
// register 7 of either width. Run it through go generate in package nn.
package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
)

//go:embed *.tmpl
var templates embed.FS

// isa is what the templates know about an instruction set.
type isa struct {
	Name  string // suffix of functions and files
	Reg   string // letter of its vector registers
	Lanes int    // float32 per register
	Wide  bool   // AVX-512
}

// Bytes is the width of a register.
func (i isa) Bytes() int { return 4 * i.Lanes }

func main() {
	for _, t := range []isa{
		{Name: "avx512", Reg: "Z", Lanes: 16, Wide: true},
		{Name: "avx2", Reg: "Y", Lanes: 8},
	} {
		for _, part := range []string{"gemm", "softmax", "vector", "attend"} {
			if err := write(t, part); err != nil {
				fmt.Fprintln(os.Stderr, "asmgen:", err)
				os.Exit(1)
			}
		}
	}
}

var register = regexp.MustCompile(`\bV(\d+)\b`)

func write(t isa, part string) error {
	funcs := template.FuncMap{
		"upto": func(n int) []int {
			s := make([]int, n)
			for i := range s {
				s[i] = i
			}
			return s
		},
		"add":   func(a, b int) int { return a + b },
		"mul":   func(a, b int) int { return a * b },
		"div":   func(a, b int) int { return a / b },
		"mod":   func(a, b int) int { return a % b },
		"list":  func(v ...int) []int { return v },
		"const": t.constant,
	}
	tmpl, err := template.New(part).Funcs(funcs).ParseFS(templates, part+".s.tmpl", "shared.tmpl")
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := tmpl.ExecuteTemplate(&out, part+".s.tmpl", t); err != nil {
		return err
	}
	text := register.ReplaceAllString(out.String(), t.Reg+"$1")
	return os.WriteFile(filepath.Join(fmt.Sprintf("%s_%s_amd64.s", part, t.Name)), []byte(tidy(text)), 0o644)
}

// tidy drops blank lines inside functions and trailing spaces.
func tidy(s string) string {
	var out []string
	for _, l := range strings.Split(s, "\n") {
		l = strings.TrimRight(l, " \t")
		if l == "" && len(out) > 0 && (out[len(out)-1] == "" || strings.HasPrefix(out[len(out)-1], "\t")) {
			continue
		}
		if strings.HasPrefix(l, "//") || strings.HasPrefix(l, "TEXT") && !strings.HasPrefix(out[len(out)-1], "//") {
			if len(out) > 0 && out[len(out)-1] != "" && !strings.HasPrefix(out[len(out)-1], "//") {
				out = append(out, "")
			}
		}
		out = append(out, l)
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n") + "\n"
}

// The constants of exp, in the order of the table in shared.tmpl.
var expNames = []string{"log2e", "ln2hi", "ln2lo", "c7", "c6", "c5", "c4", "c3", "c2", "one", "low"}

// constant names an operand: a register from 16 on where there are 32 of them,
// memory otherwise.
func (i isa) constant(name string) (string, error) {
	for k, n := range expNames {
		if n != name {
			continue
		}
		if i.Wide {
			return fmt.Sprintf("Z%d", 16+k), nil
		}
		return fmt.Sprintf("expTable<>+%d(SB)", 32*k), nil
	}
	return "", fmt.Errorf("no constant %q", name)
}
