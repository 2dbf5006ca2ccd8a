package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// CSV writes one row per arm and metric, rates as fractions, in full
// precision. Texts that a spreadsheet would run as a formula are neutralised
// by a leading apostrophe; numbers are left alone.
func CSV(r Report) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	head := []string{"study", "arm", "label"}
	for _, f := range r.Study.Factors {
		head = append(head, f.Key)
	}
	head = append(head, "recipe_hash", "metric", "name", "step", "n_seeds", "n_queries", "samples", "mean",
		"query_low", "query_high", "query_method", "seed_low", "seed_high", "seed_method", "by_seed", "warnings", "data_hash")
	rows := [][]string{head}
	for _, res := range r.Results {
		rows = append(rows, r.csvRow(res))
	}
	for _, row := range rows {
		for i, c := range row {
			row[i] = safeCell(c)
		}
		if err := w.Write(row); err != nil {
			return nil, fmt.Errorf("write results.csv: %w", err)
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

func (r Report) csvRow(res Result) []string {
	arm := Arm{}
	for _, a := range r.Arms {
		if a.Index == res.Arm {
			arm = a
		}
	}
	row := []string{r.Study.Name, strconv.Itoa(res.Arm), arm.Label}
	for _, f := range r.Study.Factors {
		level, ok := arm.Levels[f.Key]
		if !ok {
			row = append(row, "")
			continue
		}
		row = append(row, levelCell(level))
	}
	var seeds []string
	for _, v := range res.BySeed {
		seeds = append(seeds, full(float64(v)))
	}
	row = append(row, arm.Hash, res.Metric.Key, res.Metric.Name, strconv.FormatInt(res.Step, 10), strconv.Itoa(res.Seeds), strconv.Itoa(res.Queries), strconv.Itoa(res.Samples), full(float64(res.Mean)))
	row = append(row, intervalCells(res.Query)...)
	row = append(row, intervalCells(res.Seed)...)
	return append(row, strings.Join(seeds, " "), strings.Join(res.Warnings, "; "), r.Provenance.DataHash)
}

func levelCell(v any) string {
	if n, ok := number(v); ok {
		return full(n)
	}
	if s, ok := v.(string); ok {
		return s
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

func intervalCells(iv *Interval) []string {
	if iv == nil {
		return []string{"", "", ""}
	}
	return []string{full(iv.Low), full(iv.High), iv.Method}
}

func full(v float64) string {
	s := strconv.FormatFloat(v, 'g', -1, 64)
	return strings.Replace(s, "+Inf", "Inf", 1)
}

// safeCell keeps spreadsheets from reading a text as a formula.
func safeCell(s string) string {
	if s == "" || !strings.ContainsRune("=+-@\t\r|", rune(s[0])) {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}
