package rllm

import (
	"bytes"
	_ "embed"
	"strconv"
	"text/template"
)

//go:embed shims/train.py.tmpl
var trainTemplate string

//go:embed shims/uniagent.py
var uniAgentRunner string

// trainScript is train.py of a run: the flow that asks this process to play an
// episode, and the evaluator that passes its reward on.
func trainScript(train, eval string) []byte {
	var b bytes.Buffer
	t := template.Must(template.New("train.py").Funcs(template.FuncMap{"py": pyText}).Parse(trainTemplate))
	if err := t.Execute(&b, map[string]string{"Train": train, "Eval": eval, "Path": PlayPath, "URL": URLEnv, "Key": KeyEnv}); err != nil {
		return nil // the template is ours, and its tests run it
	}
	return b.Bytes()
}

// UniAgentRunner is the runner coroutine for Uni-Agent on verl 0.9 (its
// runner_fqn is alidade_runner.run when this is alidade_runner.py on the
// path). It reads the address and the secret from the variables [URLEnv] and
// [KeyEnv].
func UniAgentRunner() []byte { return []byte(uniAgentRunner) }

// pyText writes a Python text.
func pyText(s string) string { return strconv.QuoteToASCII(s) }
