package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"alidade/ablation"
	"alidade/ablation/studyfile"
	"alidade/trainer/native"
	"alidade/trainer/preflight"

	"github.com/spf13/cobra"
)

// trainersCommand lists what can train here.
func trainersCommand() *cobra.Command {
	var data string
	var asJSON bool
	c := &cobra.Command{
		Use: "trainers", Short: "List the trainers that are found here", Args: cobra.NoArgs,
		Long: "List the trainers that are found here, with their versions, and how to install the others.",
		RunE: func(c *cobra.Command, _ []string) error {
			found := preflight.Here(data).Trainers(c.Context())
			if asJSON {
				return writeJSON(c.OutOrStdout(), found)
			}
			return listTrainers(c.OutOrStdout(), found)
		},
	}
	dataFlag(c, &data)
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	c.AddCommand(installCommand())
	return c
}

func writeJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func listTrainers(out io.Writer, found []preflight.Trainer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range [][]string{{"cpu", "built in", "small policies, trained in this program"}, {"solver", "built in", "the exact solver; no policy"}, {"endpoint", "built in", "a model behind an OpenAI-compatible server plays"}, {"command", "yours", "any program that reads spec.json and appends events"}} {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	for _, t := range found {
		here := t.Summary()
		fmt.Fprintf(w, "%s\t%s\t%s\n", t.Kind, here, t.What)
		if !t.Ready && t.How != "" {
			fmt.Fprintf(w, "\t\t→ %s\n", t.How)
		}
	}
	return w.Flush()
}

// preflightCommand checks a study before it is launched.
func preflightCommand() *cobra.Command {
	var data, devices string
	var asJSON, notes bool
	c := &cobra.Command{
		Use: "preflight STUDY.yaml", Short: "Check a study of language models before it is launched", Args: cobra.ExactArgs(1),
		Long: "Check a study of language models before it is launched: settings that the installed version would refuse or ignore, the memory of\n" +
			"each device by phase, disk and host. Nothing is started; the one-step smoke run belongs to the run itself.\nThe exit code is 1 if an arm would be refused.",
		RunE: func(c *cobra.Command, args []string) error {
			source, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("read study file: %w", err)
			}
			st, err := studyfile.Decode(args[0], source)
			if err != nil {
				return err
			}
			arms, err := ablation.Arms(st)
			if err != nil {
				return err
			}
			s := preflight.Here(data)
			if devices != "" {
				m, err := parseDevices(devices)
				if err != nil {
					return err
				}
				s = preflight.For(data, m)
			}
			return checkArms(c.Context(), c.OutOrStdout(), s, arms, asJSON, notes)
		},
	}
	dataFlag(c, &data)
	c.Flags().StringVar(&devices, "devices", "", "check for other devices than this machine's: 8x80 is eight of 80 GiB on one node")
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	c.Flags().BoolVar(&notes, "notes", false, "also what was resolved: loss, clipping, KL, files")
	return c
}

// parseDevices reads "8x80".
func parseDevices(text string) (native.Machine, error) {
	n, gib, ok := strings.Cut(text, "x")
	count, err1 := strconv.Atoi(n)
	each, err2 := strconv.ParseFloat(gib, 64)
	if !ok || err1 != nil || err2 != nil || count < 1 || count > 64 || each <= 0 || each > 1024 {
		return native.Machine{}, fmt.Errorf("--devices %q: want NxGiB, such as 8x80: 1 to 64 devices of up to 1024 GiB", text)
	}
	return native.Machine{DeviceGiB: slices.Repeat([]float64{each}, count)}, nil
}

// armReport is one arm's findings.
type armReport struct {
	Arm string `json:"arm"`
	preflight.Report
}

func checkArms(ctx context.Context, out io.Writer, s *preflight.Service, arms []ablation.Arm, asJSON, notes bool) error {
	var all []armReport
	refused, looked := 0, 0
	for _, a := range arms {
		if !a.Recipe.IsNative() {
			continue
		}
		looked++
		r := s.Check(ctx, a.Recipe)
		if r.Refused() {
			refused++
		}
		all = append(all, armReport{a.Label, r})
	}
	if asJSON {
		if err := writeJSON(out, all); err != nil {
			return err
		}
	} else {
		for _, r := range all {
			printReport(out, r, notes)
		}
		fmt.Fprintf(out, "%d arms, %d with a trainer of language models, %d refused\n", len(arms), looked, refused)
	}
	if refused > 0 {
		return exitError(1)
	}
	return nil
}

func printReport(out io.Writer, r armReport, notes bool) {
	fmt.Fprintln(out, r.Arm)
	for _, v := range r.Verdicts {
		if v.Level == native.Note && v.Code != "memory" && v.Code != "disk" && !notes {
			continue
		}
		at := v.Key
		if at != "" && v.Value != "" {
			at += ": " + v.Value
		}
		if at != "" {
			at += ": "
		}
		fmt.Fprintf(out, "  %-6s  %s%s\n", v.Level, at, v.Text)
		if v.Fix != "" {
			fmt.Fprintf(out, "          → %s\n", v.Fix)
		}
	}
	if r.Memory == nil {
		return
	}
	for _, p := range r.Memory.Phases {
		var parts []string
		for _, x := range p.Parts {
			parts = append(parts, fmt.Sprintf("%s %.1f", x.Name, x.GiB))
		}
		fmt.Fprintf(out, "  %-6s  %5.1f of %.0f GiB: %s\n", p.Name, p.GiB(), r.Device, strings.Join(parts, ", "))
	}
}
