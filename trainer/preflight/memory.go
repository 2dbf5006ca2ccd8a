package preflight

import (
	"fmt"

	"alidade/ablation"
)

const gib = 1 << 30

// A Part is one use of a device's memory, GiB.
type Part struct {
	Name string  `json:"name"`
	GiB  float64 `json:"gib"`
}

// A Phase is what one device holds at the worst moment of a phase.
type Phase struct {
	Name  string `json:"name"` // rollout, update
	Parts []Part `json:"parts"`
}

// GiB is the sum of the parts.
func (p Phase) GiB() float64 {
	sum := 0.0
	for _, x := range p.Parts {
		sum += x.GiB
	}
	return sum
}

// An Estimate is what a run needs: each device by phase, the host for what is
// offloaded, the disk for checkpoints; GiB.
type Estimate struct {
	Params        int64    `json:"params"`
	Trained       int64    `json:"trained"`
	Phases        []Phase  `json:"phases"`
	HostGiB       float64  `json:"host_gib"`
	CheckpointGiB float64  `json:"checkpoint_gib"` // one
	Checkpoints   int      `json:"checkpoints"`    // kept at the same time
	Assumed       []string `json:"assumed"`        // what the figures rest on
}

// Peak is the phase that needs most.
func (e Estimate) Peak() Phase {
	var most Phase
	for _, p := range e.Phases {
		if p.GiB() > most.GiB() {
			most = p
		}
	}
	return most
}

// DiskGiB is what all checkpoints that are kept at once take.
func (e Estimate) DiskGiB() float64 { return e.CheckpointGiB * float64(e.Checkpoints) }

// Bytes of a parameter: mixed precision keeps a float32 master copy, a float32
// gradient and two float32 moments of Adam (16 bytes, as in the ZeRO paper,
// arXiv 1910.02054, counted there as 2+2+12).
const (
	masterBytes = 4
	gradBytes   = 4
	momentBytes = 8
	halfBytes   = 2
	logitBytes  = 8 // of a token and a word: bfloat16 logits, a float32 copy, the gradient in bfloat16
	contextGiB  = 1.5
	asleepGiB   = 1.0 // of an inference engine that has given its cache back
)

// defaultEngine is the frameworks' own share of a device for the rollout
// engine.
var defaultEngine = map[string]float64{"trl": 0.3, "verl": 0.5, "rllm": 0.5}

// load is a recipe in the terms of the estimate.
type load struct {
	kind            string
	s               Shape
	n, nodeN        float64 // devices in all; on one node
	sharded         bool
	states, trained float64 // parameters that do not and do train
	prompt, response,
	tokens float64 // of one pass through the model on one device
	engine  string // "" = the training weights generate
	share   float64
	deviceG float64
	tp      float64
	r       ablation.Recipe
}

// Memory estimates what a recipe needs on each of its devices, which have
// deviceGiB each. It is meant to be right within a quarter; what it rests on
// is in Assumed.
func Memory(r ablation.Recipe, s Shape, deviceGiB float64) Estimate {
	l := newLoad(r, s, deviceGiB)
	e := Estimate{Params: s.Params(), Trained: int64(l.trained), Phases: []Phase{l.update()}}
	if r.Budget.Steps > 0 && l.kind != "llamafactory" {
		e.Phases = append([]Phase{l.rollout()}, e.Phases...)
	}
	all := float64(e.Params)
	switch r.Native.Offload {
	case "optimizer":
		e.HostGiB = momentBytes * l.trained / gib
	case "all":
		e.HostGiB = (masterBytes*all + momentBytes*l.trained) / gib
	}
	if l.sharded {
		e.HostGiB *= l.nodeN / l.n
	} else {
		e.HostGiB *= l.nodeN
	}
	e.CheckpointGiB = (masterBytes*all + momentBytes*l.trained) / gib
	if r.Native.LoraRank > 0 {
		e.CheckpointGiB = (masterBytes + momentBytes) * l.trained / gib
	}
	e.Checkpoints = max(1, r.Budget.Steps/max(1, r.Budget.CheckpointEvery))
	if k := r.Native.KeepCheckpoints; k > 0 {
		e.Checkpoints = min(e.Checkpoints, k)
	}
	e.Assumed = l.assumed()
	return e
}

func newLoad(r ablation.Recipe, s Shape, deviceGiB float64) load {
	nodes, node := float64(max(1, r.Native.Nodes)), float64(max(1, r.Trainer.Devices))
	l := load{kind: r.Trainer.Kind, s: s, r: r, n: nodes * node, nodeN: node, deviceG: deviceGiB, tp: float64(max(1, r.Native.TensorParallel))}
	l.sharded = l.kind != "trl"
	l.trained = float64(s.Params())
	if r.Native.LoraRank > 0 {
		l.states, l.trained = l.trained, float64(s.LoraParams(r.Native.LoraRank))
	}
	prompt, response := Lengths(r)
	l.prompt, l.response = float64(prompt), float64(response)
	l.tokens = float64(max(1, r.Native.MicroBatch)) * (l.prompt + l.response) / float64(max(1, r.Native.SequenceParallel))
	l.engine, l.share = r.Native.Engine, r.Native.EngineMemory
	if l.engine == "auto" || l.engine == "" {
		l.engine = "vllm"
	}
	if l.engine == "hf" {
		l.engine, l.share = "", 0
	} else if l.share == 0 {
		l.share = defaultEngine[l.kind]
	}
	return l
}

// Lengths are the limits of prompt and response in tokens, the defaults of the
// section native filled in.
func Lengths(r ablation.Recipe) (prompt, response int) {
	prompt, response = r.Native.MaxPrompt, r.Native.MaxResponse
	if prompt == 0 {
		prompt = min(2048, max(1, r.Environment.MaxTokens/2))
	}
	if response == 0 {
		response = max(1, r.Environment.MaxTokens-prompt)
	}
	return prompt, response
}

// split divides what is sharded over all devices.
func (l load) split(bytes float64) float64 {
	if l.sharded {
		bytes /= l.n
	}
	return bytes / gib
}

// update is the worst moment of a gradient step.
func (l load) update() Phase {
	p := Phase{Name: "update"}
	add := func(name string, g float64) {
		if g > 0.005 {
			p.Parts = append(p.Parts, Part{name, g})
		}
	}
	add("weights", l.split(masterBytes*l.trained+halfBytes*l.states))
	add("gradients", l.split(gradBytes*l.trained))
	add("optimizer", l.split(momentBytes*l.trained))
	if l.r.Algorithm.UseKLLoss || l.r.Algorithm.UseKLInReward {
		add("reference policy", l.split(halfBytes*(l.trained+l.states)))
	}
	if l.sharded {
		add("gathered layers", 2*2*halfBytes*float64(l.s.layerParams())/gib) // two layers: weights and gradients
	}
	add("activations", l.activations())
	add("logits", l.tokens*float64(l.s.Vocab)*logitBytes/gib)
	if l.engine != "" && l.kind == "trl" {
		add("rollout engine", l.share*l.deviceG) // it keeps its share
	} else if l.engine != "" && l.kind != "llamafactory" {
		add("rollout engine, asleep", asleepGiB)
	}
	add("CUDA and communication", contextGiB)
	return p
}

// activations of one pass in bfloat16 with a fused attention, which keeps no
// square matrix: with checkpointing the input of each layer and everything of
// one layer, without it everything of all.
func (l load) activations() float64 {
	h, q, kv := float64(l.s.Hidden), float64(l.s.Heads*l.s.HeadDim), float64(l.s.KVHeads*l.s.HeadDim)
	layer := halfBytes * (4*h + 2*q + 2*kv + 4*float64(l.s.Inter))
	saved := float64(l.s.Layers) * layer
	if l.r.Native.Checkpointing {
		saved = float64(l.s.Layers)*halfBytes*h + layer
	}
	return l.tokens * saved / gib
}

// rollout is the worst moment of generation.
func (l load) rollout() Phase {
	p := Phase{Name: "rollout"}
	keep := map[string]float64{"": masterBytes + momentBytes, "none": masterBytes + momentBytes, "optimizer": masterBytes, "all": 0}[l.r.Native.Offload]
	if g := l.split(keep*l.trained + halfBytes*l.states); g > 0.005 {
		p.Parts = append(p.Parts, Part{"trainer's state", g})
	}
	if l.engine != "" {
		p.Parts = append(p.Parts, Part{"rollout engine", l.share * l.deviceG})
	} else {
		sequences := float64(l.r.Algorithm.GroupSize*l.r.Algorithm.PromptsPerStep) / l.n
		p.Parts = append(p.Parts, Part{"cache", sequences * (l.prompt + l.response) * l.s.kvBytes() / gib})
	}
	p.Parts = append(p.Parts, Part{"CUDA and communication", contextGiB})
	return p
}

// CacheGiB is what the rollout engine has left for its cache, and what one
// sequence of the longest kind takes of it, on one device.
func CacheGiB(r ablation.Recipe, s Shape, deviceGiB float64) (left, one float64) {
	l := newLoad(r, s, deviceGiB)
	left = l.share*deviceGiB - halfBytes*float64(s.Params())/l.tp/gib - 1 // its own buffers
	return left, (l.prompt + l.response) * s.kvBytes() / l.tp / gib
}

func (l load) assumed() []string {
	out := []string{
		"AdamW with float32 master weights, gradients and moments; bfloat16 arithmetic; a fused attention",
		fmt.Sprintf("%.0f tokens a pass and device", l.tokens),
	}
	if l.sharded {
		out = append(out, fmt.Sprintf("state sharded over %.0f devices", l.n))
	} else if l.n > 1 {
		out = append(out, "a full copy of the state on each device")
	}
	if l.engine != "" && l.kind != "llamafactory" {
		out = append(out, fmt.Sprintf("%.0f %% of a device for the rollout engine", 100*l.share))
	}
	return out
}
