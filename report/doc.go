// Package report turns a study's data into a finding that states its
// uncertainty. [Load] gathers an [Input] from a [Source]; [Build] is pure:
// the same input gives the same [Report], byte for byte. [View] turns a report
// into the finished strings that the page and the files are written from, so
// that HTML, Markdown, CSV and JSON cannot disagree. [Write] makes the files.
//
// Two sources of noise are shown side by side and never mixed: query noise
// (bootstrap over the held-out queries, given the trained policies) and seed
// noise (Student's t over one mean per seed).
package report
