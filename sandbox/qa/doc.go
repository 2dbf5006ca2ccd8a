// Package qa asks a travel policy questions: the out-of-domain family. A
// question is answered with the tools and the token language of
// [compact], in a world of its own, by naming one row.
//
// There are four kinds. A single-hop question asks for the row of a city with
// a given key. A two-hop question asks for the restaurant in one city that has
// the cuisine of the restaurant at a given price in another. A comparison asks
// for the cheaper of two cities' cheapest hotels. A question of kind unseen is
// single-hop, but about events, for which the prompt names a tool that neither
// trips nor the other kinds have.
//
// Start with [NewWorld] and [World.Questions], then [World.NewSession].
// [World.Write] writes an answered question to learn from; the unseen kind is
// never among those. With Renamed some of them call their tool by another word,
// which the prompt gives: from many such words a policy can learn to call what
// the prompt names. The unseen tool's own word is one that no policy has ever
// written; with Known it is one that policies write for other things.
package qa
