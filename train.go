package main

import (
	"fmt"
	"strings"

	"alidade/ablation"
	"alidade/trainer"
	"alidade/trainer/cpu"
	"alidade/trainer/endpoint"
	"alidade/trainer/native"
	"alidade/trainer/solver"

	"github.com/spf13/cobra"
)

// trainCommand is what the runner starts for the trainers of this binary.
func trainCommand() *cobra.Command {
	var spec string
	c := &cobra.Command{
		Use: "train --spec FILE", Short: "Run the embedded trainer on a spec.json", Args: cobra.NoArgs,
		Long: "Run the embedded trainer on a spec.json.\n\nThe runner starts this; by hand it repeats a run outside the queue.",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := trainer.ReadSpec(spec)
			if err != nil {
				return err
			}
			code := 0
			switch kind := s.Recipe.Trainer.Kind; kind {
			case "cpu":
				code = cpu.Main(c.Context(), spec)
			case "solver":
				code = solver.Main(c.Context(), spec)
			case "endpoint":
				code = endpoint.Main(c.Context(), spec)
			default:
				if !s.Recipe.IsNative() {
					return fmt.Errorf("%s: recipe.trainer.kind %q is not built in; allowed: cpu, solver, endpoint, %s", spec, kind, strings.Join(ablation.NativeKinds(), ", "))
				}
				code = native.Main(c.Context(), nativeAdapters(), spec)
			}
			if code != 0 {
				return exitError(code)
			}
			return nil
		},
	}
	c.Flags().StringVar(&spec, "spec", "", "the attempt's spec.json")
	_ = c.MarkFlagRequired("spec") // the flag exists
	return c
}
