// Package stats turns numbers into numbers: summaries, intervals, paired
// comparisons, corrections for many comparisons, and thinning for charts. It
// knows no runs, files or colours. Doubts are values: an [Estimate] carries
// warnings, which are shown beside it.
//
// Two sources of noise are kept apart everywhere. Query noise is what would
// change if other queries had been drawn for the panel; [ClusterMean]
// estimates it by resampling queries, given the trained policies. Seed noise
// is what would change if the policies were trained again; [TInterval] over
// one mean per seed estimates it. Neither interval contains the other source,
// and no function here mixes them.
//
// Start with [TInterval], [Wilson], [ClusterMean] and [PairedClusters]; charts
// use [Thin].
package stats
