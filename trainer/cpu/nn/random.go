package nn

import "math"

// Stream derives an independent random stream from a seed and any parts that
// name it, such as step, prompt and rollout. Same input, same stream.
func Stream(seed uint64, parts ...uint64) uint64 {
	s := mix(seed + 0x9e3779b97f4a7c15)
	for _, p := range parts {
		s = mix(s ^ mix(p+0xd1342543de82ef95))
	}
	return s
}

// mix is a bijection of 64 bits in which each input bit moves about half of
// the output bits (the finaliser of a multiply-xorshift hash).
func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

// uniform returns draw number i of a stream, in [0,1).
func uniform(stream, i uint64) float64 {
	return float64(Stream(stream, i)>>11) / (1 << 53)
}

// normals draws standard normal numbers from a stream, one after another.
type normals struct {
	stream, i uint64
}

// next is one half of a Box-Muller pair.
func (n *normals) next() float64 {
	u, v := uniform(n.stream, n.i), uniform(n.stream, n.i+1)
	n.i += 2
	return math.Sqrt(-2*math.Log(1-u)) * math.Cos(2*math.Pi*v)
}
