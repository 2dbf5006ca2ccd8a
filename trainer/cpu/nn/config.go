package nn

import "fmt"

// HeadDim is the width of every attention head.
const HeadDim = 32

// panel is the column width of packed weights; widths are multiples of it.
const panel = 32

// Config is the shape of a model. The zero value is not valid; start from a
// size of the [Ladder] and set Vocab.
type Config struct {
	Vocab  int `json:"vocab"`   // tokens are 0..Vocab-1
	Dim    int `json:"dim"`     // residual width, Heads × 32
	Layers int `json:"layers"`  // at least 1
	Heads  int `json:"heads"`   // Dim / 32
	Hidden int `json:"hidden"`  // MLP width, a multiple of 32
	MaxLen int `json:"max_len"` // longest sequence that the model reads
}

// Size is one rung of the ladder of proxy models.
type Size struct {
	Name   string
	Config Config // without Vocab
}

// Ladder returns the sizes from smallest to largest, without a vocabulary.
func Ladder() []Size {
	at := func(name string, dim, layers int) Size {
		return Size{name, Config{Dim: dim, Layers: layers, Heads: dim / HeadDim, Hidden: 4 * dim, MaxLen: 1024}}
	}
	return []Size{
		at("nano", 32, 2), at("small", 64, 2), at("medium", 96, 3), at("large", 128, 3), at("xl", 192, 4),
	}
}

// SizeConfig returns the named size of the [Ladder] with the given vocabulary.
func SizeConfig(name string, vocab int) (Config, error) {
	var names []string
	for _, s := range Ladder() {
		if s.Name == name {
			c := s.Config
			c.Vocab = vocab
			return c, c.Validate()
		}
		names = append(names, s.Name)
	}
	return Config{}, fmt.Errorf("model size %q: allowed are %q", name, names)
}

// Validate reports the first field that is out of range.
func (c Config) Validate() error {
	bad := func(field string, value int, allowed string) error {
		return fmt.Errorf("model %s %d: allowed is %s", field, value, allowed)
	}
	switch {
	case c.Vocab < 2 || c.Vocab > 1<<16:
		return bad("vocab", c.Vocab, "2 to 65536")
	case c.Heads < 1 || c.Heads > 64:
		return bad("heads", c.Heads, "1 to 64")
	case c.Dim != c.Heads*HeadDim:
		return bad("dim", c.Dim, fmt.Sprintf("heads × %d = %d", HeadDim, c.Heads*HeadDim))
	case c.Layers < 1 || c.Layers > 64:
		return bad("layers", c.Layers, "1 to 64")
	case c.Hidden < panel || c.Hidden%panel != 0 || c.Hidden > 1<<16:
		return bad("hidden", c.Hidden, "a multiple of 32 from 32 to 65536")
	case c.MaxLen < 2 || c.MaxLen > 1<<16:
		return bad("max_len", c.MaxLen, "2 to 65536")
	}
	return nil
}

// Params returns the number of parameters, without padding.
func (c Config) Params() int {
	return 3*c.Vocab*c.Dim + c.Layers*(4*c.Dim*c.Dim+2*c.Dim*c.Hidden)
}

// vocabPadded is Vocab rounded up to whole panels.
func (c Config) vocabPadded() int { return roundUp(c.Vocab, panel) }

// rotary says whether a head sees positions. Even heads do not, so that they
// can match tokens at any distance; a lone head does in odd layers.
func (c Config) rotary(layer, head int) bool {
	if c.Heads == 1 {
		return layer%2 == 1
	}
	return head%2 == 1
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }
